// Calls every routine that a profiler wraps, and writes what it expects to be seen:
// mpi_classes FOLDER [FOLDER_FOR_EXPECTATIONS]. At least two ranks.
#include "expected.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT_CALLED(MPI_Init);
  EXPECT_CALLED(MPI_Comm_rank);
  EXPECT_CALLED(MPI_Comm_size);
  point_to_point();
  requests();
  messages_that_fail();
  collectives();
  many_to_many_at_once();
  persistent_collectives();
  partitioned();
  communicators();
  neighbours();
  windows();
  more_windows();
  files(argc > 1 ? argv[1] : "/tmp");
  sessions();
  EXPECT_CALLED(MPI_Finalize);
  if (argc > 2) write_expected(argv[2]);
  MPI_Finalize();
  return 0;
}
