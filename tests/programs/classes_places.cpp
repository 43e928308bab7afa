// Communicators and what is done in them; windows; files.
#include <array>

#include "expected.hpp"

void communicators() {
  MPI_Comm half, cart, copy, ring;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  expect("MPI_Comm_split", 0, 0);
  double value = 1, sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
  expect("MPI_Allreduce", 8, 8);
  MPI_Comm_dup(half, &copy);
  expect("MPI_Comm_dup", 0, 0);
  // The other half is a remote group: a root tells all of it, and nobody of its own.
  MPI_Comm across;
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &across);
  expect("MPI_Intercomm_create", 0, 0);
  int word = 0;
  const bool sends = rank % 2 == 0, root = rank == 0;
  MPI_Bcast(&word, 1, MPI_INT, sends ? (root ? MPI_ROOT : MPI_PROC_NULL) : 0, across);
  expect("MPI_Bcast", root ? 4 : 0, sends ? 0 : 4);
  MPI_Comm_free(&across);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &cart);
  expect("MPI_Cart_create", 0, 0);
  std::array<int, 4> near{};
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, near.data(), 1, MPI_INT, cart);
  expect("MPI_Neighbor_allgather", 8, 8);  // to the left and to the right
  MPI_Comm_free(&cart);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
  expect("MPI_Dist_graph_create_adjacent", 0, 0);
  std::array<int, 4> out{};
  MPI_Neighbor_alltoall(out.data(), 3, MPI_INT, near.data(), 3, MPI_INT, ring);
  expect("MPI_Neighbor_alltoall", 12, 12);
  const int two = 2, zero = 0;
  MPI_Request request;
  MPI_Ineighbor_alltoallv(out.data(), &two, &zero, MPI_INT, near.data(), &two, &zero, MPI_INT, ring,
                          &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect("MPI_Ineighbor_alltoallv", 8, 8);
  expect("MPI_Wait", 0, 0);
  MPI_Comm_free(&ring);
  expect("MPI_Comm_free", 0, 0, 5);
}

void windows() {
  std::vector<int> memory(100);
  const int right = (rank + 1) % size;
  MPI_Win window;
  MPI_Win_create(memory.data(), 400, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  expect("MPI_Win_create", 0, 0);
  auto data = buffer(10), back = buffer(10);
  MPI_Win_fence(0, window);
  MPI_Put(data.data(), 10, MPI_INT, right, 0, 10, MPI_INT, window);
  MPI_Put(data.data(), 10, MPI_INT, MPI_PROC_NULL, 0, 10, MPI_INT, window);
  expect("MPI_Put", 40, 0, 2);
  MPI_Win_fence(0, window);
  MPI_Get(back.data(), 5, MPI_INT, right, 0, 5, MPI_INT, window);
  expect("MPI_Get", 0, 20);
  MPI_Win_fence(0, window);
  MPI_Accumulate(data.data(), 4, MPI_INT, right, 0, 4, MPI_INT, MPI_SUM, window);
  expect("MPI_Accumulate", 16, 0);
  MPI_Win_fence(0, window);
  expect("MPI_Win_fence", 0, 0, 4);
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
  MPI_Get_accumulate(data.data(), 3, MPI_INT, back.data(), 3, MPI_INT, right, 0, 3, MPI_INT,
                     MPI_SUM, window);
  expect("MPI_Get_accumulate", 12, 12);
  MPI_Fetch_and_op(data.data(), back.data(), MPI_INT, right, 0, MPI_SUM, window);
  expect("MPI_Fetch_and_op", 4, 4);
  MPI_Compare_and_swap(data.data(), data.data(), back.data(), MPI_INT, right, 0, window);
  expect("MPI_Compare_and_swap", 4, 4);
  MPI_Request request;
  MPI_Rput(data.data(), 2, MPI_INT, right, 0, 2, MPI_INT, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect("MPI_Rput", 8, 0);
  MPI_Rget(back.data(), 2, MPI_INT, right, 0, 2, MPI_INT, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect("MPI_Rget", 0, 8);
  expect("MPI_Wait", 0, 0, 2);
  MPI_Win_flush(right, window);
  MPI_Win_unlock(right, window);
  expect("MPI_Win_flush", 0, 0);
  expect("MPI_Win_lock", 0, 0);
  expect("MPI_Win_unlock", 0, 0);
  MPI_Win_free(&window);
  expect("MPI_Win_free", 0, 0);
}

void files(const char* folder) {
  const auto path = std::string(folder) + "/mpi_classes.data";
  auto data = buffer(10);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                &file);
  MPI_File_write_at(file, 40 * rank, data.data(), 10, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_read_at_all(file, 40 * rank, data.data(), 5, MPI_INT, MPI_STATUS_IGNORE);
  MPI_Request request;
  MPI_File_iread_at(file, 40 * rank, data.data(), 2, MPI_INT, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  expect("MPI_File_open", 0, 0);
  expect("MPI_File_write_at", 40, 0);
  expect("MPI_File_read_at_all", 0, 20);
  expect("MPI_File_iread_at", 0, 8);
  expect("MPI_Wait", 0, 0);
  expect("MPI_File_close", 0, 0);
}
