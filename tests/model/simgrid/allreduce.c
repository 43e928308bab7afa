/* One allreduce under SimGrid's SMPI: prints its simulated time in seconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int count = argc > 1 ? atoi(argv[1]) : 1024;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float* const data = SMPI_SHARED_MALLOC((size_t)count * sizeof(float));
  float* const sum = SMPI_SHARED_MALLOC((size_t)count * sizeof(float));
  /* All ranks are here at the same simulated moment; a barrier would let them out one by one. */
  double begin = MPI_Wtime(), first = 0;
  MPI_Allreduce(data, sum, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  double end = MPI_Wtime(), last = 0;
  MPI_Reduce(&begin, &first, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("seconds %.12g\n", last - first);
  SMPI_SHARED_FREE(data);
  SMPI_SHARED_FREE(sum);
  MPI_Finalize();
  return 0;
}
