// What MPI 4 has besides: persistent collectives, partitioned messages, sessions.
#include "expected.hpp"

#if MPI_VERSION >= 4
namespace {

// Bytes move each time it is started, and none when the request is made. Few are started twice:
// MPICH 4.0 frees what some of its persistent collectives need the next time.
void use(MPI_Request request, std::uint64_t sent, std::uint64_t received, int times = 1) {
  for (int i = 0; i < times; ++i) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_MOVED(MPI_Start, sent, received);
    EXPECT_CALLED(MPI_Wait);
  }
  MPI_Request_free(&request);
  EXPECT_CALLED(MPI_Request_free);
}

void persistent_neighbours() {
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Comm ring;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
  EXPECT_CALLED(MPI_Dist_graph_create_adjacent);
  auto in = buffer(8), out = buffer(8);
  const Count two = 2;
  const Distance zero = 0;
  const MPI_Aint here = 0;
  const MPI_Datatype word = MPI_INT;
  const auto none = MPI_INFO_NULL;
  MPI_Request r;
  MPI_Neighbor_allgather_init(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, ring, none, &r);
  EXPECT_CALLED(MPI_Neighbor_allgather_init);
  use(r, 4, 4);
  MPI_Neighbor_allgatherv_init(in.data(), 2, MPI_INT, out.data(), &two, &zero, MPI_INT, ring, none,
                               &r);
  EXPECT_CALLED(MPI_Neighbor_allgatherv_init);
  use(r, 8, 8);
  MPI_Neighbor_alltoall_init(in.data(), 3, MPI_INT, out.data(), 3, MPI_INT, ring, none, &r);
  EXPECT_CALLED(MPI_Neighbor_alltoall_init);
  use(r, 12, 12);
  MPI_Neighbor_alltoallv_init(in.data(), &two, &zero, MPI_INT, out.data(), &two, &zero, MPI_INT,
                              ring, none, &r);
  EXPECT_CALLED(MPI_Neighbor_alltoallv_init);
  use(r, 8, 8);
  MPI_Neighbor_alltoallw_init(in.data(), &two, &here, &word, out.data(), &two, &here, &word, ring,
                              none, &r);
  EXPECT_CALLED(MPI_Neighbor_alltoallw_init);
  use(r, 8, 8);
  MPI_Comm_free(&ring);
  EXPECT_CALLED(MPI_Comm_free);
}

}  // namespace

void persistent_collectives() {
  const auto p = static_cast<std::uint64_t>(size);
  const auto n = static_cast<std::size_t>(size);
  const bool root = rank == 0;
  auto in = buffer(10 * n), out = buffer(10 * n);
  const std::vector<Count> counts(n, 2);
  std::vector<Distance> places(n), in_bytes(n);
  for (std::size_t i = 0; i < n; ++i) places[i] = 2 * static_cast<Distance>(i);
  for (std::size_t i = 0; i < n; ++i) in_bytes[i] = 4 * places[i];
  const std::vector<MPI_Datatype> types(n, MPI_INT);
  const MPI_Comm world = MPI_COMM_WORLD;
  const auto none = MPI_INFO_NULL;
  MPI_Request r;
  MPI_Barrier_init(world, none, &r);
  EXPECT_CALLED(MPI_Barrier_init);
  use(r, 0, 0);
  MPI_Bcast_init(in.data(), 3, MPI_INT, 0, world, none, &r);
  EXPECT_CALLED(MPI_Bcast_init);
  use(r, root ? 12 : 0, root ? 0 : 12);
  MPI_Reduce_init(in.data(), out.data(), 3, MPI_INT, MPI_SUM, 0, world, none, &r);
  EXPECT_CALLED(MPI_Reduce_init);
  use(r, 12, root ? 12 : 0);
  MPI_Allreduce_init(in.data(), out.data(), 3, MPI_INT, MPI_SUM, world, none, &r);
  EXPECT_CALLED(MPI_Allreduce_init);
  use(r, 12, 12, 2);
  MPI_Scan_init(in.data(), out.data(), 3, MPI_INT, MPI_SUM, world, none, &r);
  EXPECT_CALLED(MPI_Scan_init);
  use(r, 12, 12);
  MPI_Exscan_init(in.data(), out.data(), 3, MPI_INT, MPI_SUM, world, none, &r);
  EXPECT_CALLED(MPI_Exscan_init);
  use(r, 12, root ? 0 : 12);
  MPI_Gather_init(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, 0, world, none, &r);
  EXPECT_CALLED(MPI_Gather_init);
  use(r, 4, root ? 4 * p : 0);
  MPI_Gatherv_init(in.data(), 2, MPI_INT, out.data(), counts.data(), places.data(), MPI_INT, 0,
                   world, none, &r);
  EXPECT_CALLED(MPI_Gatherv_init);
  use(r, 8, root ? 8 * p : 0);
  MPI_Scatter_init(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, 0, world, none, &r);
  EXPECT_CALLED(MPI_Scatter_init);
  use(r, root ? 4 * p : 0, 4);
  MPI_Scatterv_init(in.data(), counts.data(), places.data(), MPI_INT, out.data(), 2, MPI_INT, 0,
                    world, none, &r);
  EXPECT_CALLED(MPI_Scatterv_init);
  use(r, root ? 8 * p : 0, 8);
  MPI_Allgather_init(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, world, none, &r);
  EXPECT_CALLED(MPI_Allgather_init);
  use(r, 4, 4 * p);
  MPI_Allgatherv_init(in.data(), 2, MPI_INT, out.data(), counts.data(), places.data(), MPI_INT,
                      world, none, &r);
  EXPECT_CALLED(MPI_Allgatherv_init);
  use(r, 8, 8 * p);
  MPI_Alltoall_init(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, world, none, &r);
  EXPECT_CALLED(MPI_Alltoall_init);
  use(r, 4 * p, 4 * p);
  MPI_Alltoallv_init(in.data(), counts.data(), places.data(), MPI_INT, out.data(), counts.data(),
                     places.data(), MPI_INT, world, none, &r);
  EXPECT_CALLED(MPI_Alltoallv_init);
  use(r, 8 * p, 8 * p);
  MPI_Alltoallw_init(in.data(), counts.data(), in_bytes.data(), types.data(), out.data(),
                     counts.data(), in_bytes.data(), types.data(), world, none, &r);
  EXPECT_CALLED(MPI_Alltoallw_init);
  use(r, 8 * p, 8 * p);
  MPI_Reduce_scatter_init(in.data(), out.data(), counts.data(), MPI_INT, MPI_SUM, world, none, &r);
  EXPECT_CALLED(MPI_Reduce_scatter_init);
  use(r, 8 * p, 8);
  MPI_Reduce_scatter_block_init(in.data(), out.data(), 2, MPI_INT, MPI_SUM, world, none, &r);
  EXPECT_CALLED(MPI_Reduce_scatter_block_init);
  use(r, 8 * p, 8);
  persistent_neighbours();
}

// Four parts of five integers, made ready in every way; the receiver looks whether one has come.
void partitioned() {
  if (rank > 1) return;
  auto data = buffer(20);
  const int peer = 1 - rank;
  MPI_Request request;
  if (rank == 0) {
    MPI_Psend_init(data.data(), 4, 5, MPI_INT, peer, 61, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    EXPECT_CALLED(MPI_Psend_init);
    MPI_Start(&request);
    int last[] = {3};
    MPI_Pready(0, request);
    MPI_Pready_range(1, 2, request);
    MPI_Pready_list(1, last, request);
    EXPECT_MOVED(MPI_Start, 80, 0);
    EXPECT_CALLED(MPI_Pready);
    EXPECT_CALLED(MPI_Pready_range);
    EXPECT_CALLED(MPI_Pready_list);
  } else {
    MPI_Precv_init(data.data(), 4, 5, MPI_INT, peer, 61, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    EXPECT_CALLED(MPI_Precv_init);
    MPI_Start(&request);
    EXPECT_MOVED(MPI_Start, 0, 80);
    for (int came = 0; came == 0;) {
      MPI_Parrived(request, 3, &came);
      EXPECT_CALLED(MPI_Parrived);
    }
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_CALLED(MPI_Wait);
  MPI_Request_free(&request);
  EXPECT_CALLED(MPI_Request_free);
}

// A communicator that comes from no other one.
void sessions() {
  MPI_Session session;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  EXPECT_CALLED(MPI_Session_init);
  MPI_Group group;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm comm;
  MPI_Comm_create_from_group(group, "sinew", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  EXPECT_CALLED(MPI_Comm_create_from_group);
  int word = 1, sum = 0;
  MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, comm);
  EXPECT_MOVED(MPI_Allreduce, 4, 4);
  MPI_Group_free(&group);
  MPI_Comm_free(&comm);
  EXPECT_CALLED(MPI_Comm_free);
  MPI_Session_finalize(&session);
  EXPECT_CALLED(MPI_Session_finalize);
}
#else
void persistent_collectives() {}
void partitioned() {}
void sessions() {}
#endif
