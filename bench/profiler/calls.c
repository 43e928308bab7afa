/* Calls of one routine in a row: calls ROUTINE COUNT. Prints nanoseconds a call. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

int main(int argc, char** argv) {
  const int rank_only = argc > 1 && strcmp(argv[1], "Comm_rank") == 0;
  const int world = argc > 1 && strcmp(argv[1], "Allreduce_world") == 0;
  const long count = argc > 2 ? atol(argv[2]) : 1000;
  double in = 1, out = 0, begin;
  int rank = 0;
  MPI_Init(&argc, &argv);
  const MPI_Comm comm = world ? MPI_COMM_WORLD : MPI_COMM_SELF;
  begin = now_ns();
  for (long i = 0; i < count; ++i) {
    if (rank_only)
      MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    else
      MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, comm);
  }
  const double took = now_ns() - begin;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("%.2f\n", took / (double)count);
  MPI_Finalize();
  return 0;
}
