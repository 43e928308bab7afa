// Calls every class of MPI routines that a profiler wraps, and writes what it expects to be seen:
// mpi_classes FOLDER [FOLDER_FOR_EXPECTATIONS]. At least two ranks.
#include "expected.hpp"

// Large counts, persistent collectives and partitioned messages.
void newer_routines() {
#if MPI_VERSION >= 4
  auto in = buffer(10), out = buffer(10);
  MPI_Allreduce_c(in.data(), out.data(), 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("MPI_Allreduce_c", 40, 40);
  MPI_Request request;
  MPI_Allreduce_init(in.data(), out.data(), 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &request);
  expect("MPI_Allreduce_init", 0, 0);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect("MPI_Start", 40, 40);
  expect("MPI_Wait", 0, 0);
  MPI_Request_free(&request);
  expect("MPI_Request_free", 0, 0);
  if (rank == 0) {
    MPI_Send_c(in.data(), 6, MPI_INT, 1, 60, MPI_COMM_WORLD);
    expect("MPI_Send_c", 24, 0);
    MPI_Psend_init(in.data(), 2, 5, MPI_INT, 1, 61, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    expect("MPI_Psend_init", 0, 0);
    MPI_Start(&request);
    MPI_Pready(0, request);
    MPI_Pready(1, request);
    expect("MPI_Start", 40, 0);
    expect("MPI_Pready", 0, 0, 2);
  } else if (rank == 1) {
    MPI_Recv_c(in.data(), 10, MPI_INT, 0, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("MPI_Recv_c", 0, 24);
    MPI_Precv_init(in.data(), 2, 5, MPI_INT, 0, 61, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    expect("MPI_Precv_init", 0, 0);
    MPI_Start(&request);
    expect("MPI_Start", 0, 40);
  }
  if (rank > 1) return;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect("MPI_Wait", 0, 0);
  MPI_Request_free(&request);
  expect("MPI_Request_free", 0, 0);
#endif
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  expect("MPI_Init", 0, 0);
  expect("MPI_Comm_rank", 0, 0);
  expect("MPI_Comm_size", 0, 0);
  point_to_point();
  requests();
  collectives();
  many_to_many_at_once();
  communicators();
  windows();
  files(argc > 1 ? argv[1] : "/tmp");
  newer_routines();
  expect("MPI_Finalize", 0, 0);
  if (argc > 2) write_expected(argv[2]);
  MPI_Finalize();
  return 0;
}
