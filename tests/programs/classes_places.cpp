// Communicators and what is done in them.
#include <array>

#include "expected.hpp"

void communicators() {
  MPI_Comm half, copy;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  EXPECT_CALLED(MPI_Comm_split);
  double value = 1, sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
  EXPECT_MOVED(MPI_Allreduce, 8, 8);
  MPI_Comm_dup(half, &copy);
  EXPECT_CALLED(MPI_Comm_dup);
  // The other half is a remote group: a root tells all of it, and nobody of its own.
  MPI_Comm across;
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &across);
  EXPECT_CALLED(MPI_Intercomm_create);
  int word = 0;
  const bool sends = rank % 2 == 0, root = rank == 0;
  MPI_Bcast(&word, 1, MPI_INT, sends ? (root ? MPI_ROOT : MPI_PROC_NULL) : 0, across);
  EXPECT_MOVED(MPI_Bcast, root ? 4 : 0, sends ? 0 : 4);
  if (sends) word = 3;
  std::vector<int> all(static_cast<std::size_t>(size));
  int others = 0;
  MPI_Comm_remote_size(across, &others);
  EXPECT_CALLED(MPI_Comm_remote_size);
  MPI_Allgather(&word, 1, MPI_INT, all.data(), 1, MPI_INT, across);
  EXPECT_MOVED(MPI_Allgather, 4, 4 * static_cast<std::uint64_t>(others));
  MPI_Group there;
  MPI_Comm_remote_group(across, &there);
  EXPECT_CALLED(MPI_Comm_remote_group);
  MPI_Group_free(&there);
  int is_inter = 0;
  MPI_Comm_test_inter(across, &is_inter);
  EXPECT_CALLED(MPI_Comm_test_inter);
  MPI_Comm whole;
  MPI_Intercomm_merge(across, sends ? 0 : 1, &whole);
  EXPECT_CALLED(MPI_Intercomm_merge);
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, whole);
  EXPECT_MOVED(MPI_Allreduce, 8, 8);
  MPI_Comm_free(&whole);
  MPI_Comm_free(&across);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
  EXPECT_CALLED(MPI_Comm_free, 4);
  MPI_Group group;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  EXPECT_CALLED(MPI_Comm_group);
  MPI_Comm made[6];
  MPI_Comm_create(MPI_COMM_WORLD, group, &made[0]);
  MPI_Comm_create_group(MPI_COMM_WORLD, group, 8, &made[1]);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made[2]);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made[3]);
  MPI_Request request;
  MPI_Comm_idup(MPI_COMM_WORLD, &made[4], &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_CALLED(MPI_Comm_create);
  EXPECT_CALLED(MPI_Comm_create_group);
  EXPECT_CALLED(MPI_Comm_dup_with_info);
  EXPECT_CALLED(MPI_Comm_split_type);
  EXPECT_CALLED(MPI_Comm_idup);
  EXPECT_CALLED(MPI_Wait);
  std::size_t count = 5;
#if MPI_VERSION >= 4
  MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made[count++], &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_CALLED(MPI_Comm_idup_with_info);
  EXPECT_CALLED(MPI_Wait);
#endif
  int same = 0;
  MPI_Comm_compare(MPI_COMM_WORLD, made[0], &same);
  EXPECT_CALLED(MPI_Comm_compare);
  MPI_Group_free(&group);
  for (std::size_t i = 0; i < count; ++i) {
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, made[i]);
    EXPECT_MOVED(MPI_Allreduce, 8, 8);
    MPI_Comm_disconnect(&made[i]);
    EXPECT_CALLED(MPI_Comm_disconnect);
  }
}

// Everyone has one rank it receives from and one it sends to, or two of each.
void neighbours() {
  const MPI_Comm world = MPI_COMM_WORLD;
  std::array<int, 8> near{}, out{};
  MPI_Comm cart, line, ring, graph, other;
  const int shape[] = {1, size}, periods[] = {0, 1}, keeps[] = {0, 1};
  MPI_Cart_create(world, 2, shape, periods, 0, &cart);
  EXPECT_CALLED(MPI_Cart_create);
  MPI_Cart_sub(cart, keeps, &line);
  EXPECT_CALLED(MPI_Cart_sub);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, near.data(), 1, MPI_INT, line);
  EXPECT_MOVED(MPI_Neighbor_allgather, 8, 8);  // to the left and to the right
  // In each direction of both dimensions; of the first there is nobody, and yet there is a place.
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, near.data(), 1, MPI_INT, cart);
  EXPECT_MOVED(MPI_Neighbor_allgather, 16, 16);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Dist_graph_create_adjacent(world, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &ring);
  EXPECT_CALLED(MPI_Dist_graph_create_adjacent);
  const Count two = 2;
  const Distance zero = 0;
  const MPI_Aint here = 0;
  const MPI_Datatype word = MPI_INT;
  const auto wait = [](MPI_Request request) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_CALLED(MPI_Wait);
  };
  MPI_Request r;
  MPI_Neighbor_alltoall(out.data(), 3, MPI_INT, near.data(), 3, MPI_INT, ring);
  EXPECT_MOVED(MPI_Neighbor_alltoall, 12, 12);
  MPI_Neighbor_allgatherv(out.data(), 2, MPI_INT, near.data(), &two, &zero, MPI_INT, ring);
  EXPECT_MOVED(MPI_Neighbor_allgatherv, 8, 8);
  MPI_Neighbor_alltoallv(out.data(), &two, &zero, MPI_INT, near.data(), &two, &zero, MPI_INT, ring);
  EXPECT_MOVED(MPI_Neighbor_alltoallv, 8, 8);
  MPI_Neighbor_alltoallw(out.data(), &two, &here, &word, near.data(), &two, &here, &word, ring);
  EXPECT_MOVED(MPI_Neighbor_alltoallw, 8, 8);
  MPI_Ineighbor_allgather(out.data(), 1, MPI_INT, near.data(), 1, MPI_INT, ring, &r);
  EXPECT_MOVED(MPI_Ineighbor_allgather, 4, 4);
  wait(r);
  MPI_Ineighbor_allgatherv(out.data(), 2, MPI_INT, near.data(), &two, &zero, MPI_INT, ring, &r);
  EXPECT_MOVED(MPI_Ineighbor_allgatherv, 8, 8);
  wait(r);
  MPI_Ineighbor_alltoall(out.data(), 3, MPI_INT, near.data(), 3, MPI_INT, ring, &r);
  EXPECT_MOVED(MPI_Ineighbor_alltoall, 12, 12);
  wait(r);
  MPI_Ineighbor_alltoallv(out.data(), &two, &zero, MPI_INT, near.data(), &two, &zero, MPI_INT, ring,
                          &r);
  EXPECT_MOVED(MPI_Ineighbor_alltoallv, 8, 8);
  wait(r);
  MPI_Ineighbor_alltoallw(out.data(), &two, &here, &word, near.data(), &two, &here, &word, ring,
                          &r);
  EXPECT_MOVED(MPI_Ineighbor_alltoallw, 8, 8);
  wait(r);
  // The same ring, told by each rank for itself; and one in which everyone knows rank 0 alone.
  const int one = 1;
  MPI_Dist_graph_create(world, 1, &rank, &one, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &other);
  EXPECT_CALLED(MPI_Dist_graph_create);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, near.data(), 1, MPI_INT, other);
  EXPECT_MOVED(MPI_Neighbor_allgather, 4, 4);
  std::vector<int> ends, edges;
  for (int i = 1; i < size; ++i) edges.push_back(i);
  ends.push_back(size - 1);
  for (int i = 1; i < size; ++i) {
    edges.push_back(0);
    ends.push_back(size - 1 + i);
  }
  MPI_Graph_create(world, size, ends.data(), edges.data(), 0, &graph);
  EXPECT_CALLED(MPI_Graph_create);
  const auto degree = static_cast<std::uint64_t>(rank == 0 ? size - 1 : 1);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, near.data(), 1, MPI_INT, graph);
  EXPECT_MOVED(MPI_Neighbor_allgather, 4 * degree, 4 * degree);
  for (MPI_Comm* const comm : {&cart, &line, &ring, &other, &graph}) MPI_Comm_free(comm);
  EXPECT_CALLED(MPI_Comm_free, 5);
}
