// Collectives.
#include "expected.hpp"

void collectives() {
  const auto p = static_cast<std::uint64_t>(size);
  const auto n = static_cast<std::size_t>(size);
  auto in = buffer(100 * n), out = buffer(100 * n);
  const bool root = rank == 1;
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_CALLED(MPI_Barrier);
  MPI_Bcast(in.data(), 100, MPI_INT, 1, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Bcast, root ? 400 : 0, root ? 0 : 400);
  MPI_Reduce(in.data(), out.data(), 50, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Reduce, 200, root ? 200 : 0);
  MPI_Allreduce(MPI_IN_PLACE, out.data(), 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Allreduce, 64, 64);
  MPI_Scan(in.data(), out.data(), 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Scan, 20, 20);
  MPI_Exscan(in.data(), out.data(), 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Exscan, 20, rank == 0 ? 0 : 20);
  // Arguments that mean nothing on a rank may be anything.
  MPI_Gather(in.data(), 10, MPI_INT, root ? out.data() : nullptr, root ? 10 : -7,
             root ? MPI_INT : MPI_DATATYPE_NULL, 1, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Gather, 40, root ? 40 * p : 0);
  MPI_Gather(root ? MPI_IN_PLACE : static_cast<void*>(in.data()), root ? 0 : 10,
             root ? MPI_DATATYPE_NULL : MPI_INT, root ? out.data() : nullptr, 10,
             root ? MPI_INT : MPI_DATATYPE_NULL, 1, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Gather, 40, root ? 40 * p : 0);
  MPI_Scatter(root ? in.data() : nullptr, root ? 10 : 0, root ? MPI_INT : MPI_DATATYPE_NULL,
              out.data(), 10, MPI_INT, 1, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Scatter, root ? 40 * p : 0, 40);
  MPI_Allgather(in.data(), 10, MPI_INT, out.data(), 10, MPI_INT, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Allgather, 40, 40 * p);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out.data(), 10, MPI_INT, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Allgather, 40, 40 * p);
  MPI_Scatter(root ? in.data() : nullptr, 10, root ? MPI_INT : MPI_DATATYPE_NULL,
              root ? MPI_IN_PLACE : static_cast<void*>(out.data()), root ? -1 : 10,
              root ? MPI_DATATYPE_NULL : MPI_INT, 1, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Scatter, root ? 40 * p : 0, 40);
  MPI_Reduce(root ? MPI_IN_PLACE : static_cast<void*>(in.data()), root ? out.data() : nullptr, 50,
             MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Reduce, 200, root ? 200 : 0);
  MPI_Alltoall(MPI_IN_PLACE, -3, MPI_DATATYPE_NULL, out.data(), 10, MPI_INT, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Alltoall, 40 * p, 40 * p);
  MPI_Scan(MPI_IN_PLACE, out.data(), 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Scan, 20, 20);
  MPI_Datatype strided;  // 4 integers of 7
  MPI_Type_vector(2, 2, 5, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  MPI_Bcast(in.data(), 3, strided, 0, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Bcast, rank == 0 ? 48 : 0, rank == 0 ? 0 : 48);
  MPI_Allgather(in.data(), 1, strided, out.data(), 4, MPI_INT, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Allgather, 16, 16 * p);
  MPI_Type_free(&strided);
  EXPECT_CALLED(MPI_Type_free);
  MPI_Alltoall(in.data(), 10, MPI_INT, out.data(), 10, MPI_INT, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Alltoall, 40 * p, 40 * p);
  std::vector<Count> counts(n);
  std::vector<Distance> places(n);
  int total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    counts[i] = static_cast<int>(i) + 1;
    places[i] = total;
    total += static_cast<int>(counts[i]);
  }
  const auto all = static_cast<std::uint64_t>(total) * 4;
  const auto own = static_cast<std::uint64_t>(rank + 1) * 4;
  MPI_Allgatherv(in.data(), rank + 1, MPI_INT, out.data(), counts.data(), places.data(), MPI_INT,
                 MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Allgatherv, own, all);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out.data(), counts.data(), places.data(),
                 MPI_INT, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Allgatherv, own, all);
  MPI_Gatherv(root ? MPI_IN_PLACE : static_cast<void*>(in.data()), rank + 1,
              root ? MPI_DATATYPE_NULL : MPI_INT, out.data(), root ? counts.data() : nullptr,
              root ? places.data() : nullptr, root ? MPI_INT : MPI_DATATYPE_NULL, 1,
              MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Gatherv, own, root ? all : 0);
  MPI_Reduce_scatter(MPI_IN_PLACE, out.data(), counts.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Reduce_scatter, all, own);
  MPI_Gatherv(in.data(), rank + 1, MPI_INT, out.data(), root ? counts.data() : nullptr,
              root ? places.data() : nullptr, MPI_INT, 1, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Gatherv, own, root ? all : 0);
  MPI_Scatterv(in.data(), root ? counts.data() : nullptr, root ? places.data() : nullptr, MPI_INT,
               out.data(), rank + 1, MPI_INT, 1, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Scatterv, root ? all : 0, own);
  MPI_Reduce_scatter(in.data(), out.data(), counts.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Reduce_scatter, all, own);
  MPI_Reduce_scatter_block(in.data(), out.data(), 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Reduce_scatter_block, 12 * p, 12);
  const std::vector<Count> same(n, rank + 1);
  std::vector<Distance> apart(n);
  for (std::size_t i = 0; i < n; ++i) apart[i] = static_cast<int>(i) * 10;
  MPI_Alltoallv(in.data(), same.data(), apart.data(), MPI_INT, out.data(), counts.data(),
                apart.data(), MPI_INT, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Alltoallv, own * p, all);
  MPI_Request request;
  MPI_Iallreduce(in.data(), out.data(), 7, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_MOVED(MPI_Iallreduce, 28, 28);
  EXPECT_CALLED(MPI_Wait);
}

// The non-blocking forms, all under way together.
void many_to_many_at_once() {
  const auto p = static_cast<std::uint64_t>(size);
  const auto n = static_cast<std::size_t>(size);
  const bool root = rank == 0;
  std::vector<std::vector<int>> in(16, buffer(10 * n)), out(16, buffer(10 * n));
  const std::vector<Count> counts(n, 2);
  std::vector<Distance> places(n);
  for (std::size_t i = 0; i < n; ++i) places[i] = 2 * static_cast<int>(i);
  std::vector<MPI_Request> requests;
  const auto next = [&] { return &requests.emplace_back(); };
  requests.reserve(20);
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Ibarrier(world, next());
  EXPECT_CALLED(MPI_Ibarrier);
  MPI_Ibcast(in[0].data(), 3, MPI_INT, 0, world, next());
  EXPECT_MOVED(MPI_Ibcast, root ? 12 : 0, root ? 0 : 12);
  MPI_Ireduce(in[1].data(), out[1].data(), 3, MPI_INT, MPI_SUM, 0, world, next());
  EXPECT_MOVED(MPI_Ireduce, 12, root ? 12 : 0);
  MPI_Igather(in[2].data(), 1, MPI_INT, out[2].data(), 1, MPI_INT, 0, world, next());
  EXPECT_MOVED(MPI_Igather, 4, root ? 4 * p : 0);
  MPI_Iscatter(in[3].data(), 1, MPI_INT, out[3].data(), 1, MPI_INT, 0, world, next());
  EXPECT_MOVED(MPI_Iscatter, root ? 4 * p : 0, 4);
  MPI_Iallgather(in[4].data(), 1, MPI_INT, out[4].data(), 1, MPI_INT, world, next());
  EXPECT_MOVED(MPI_Iallgather, 4, 4 * p);
  MPI_Ialltoall(in[5].data(), 1, MPI_INT, out[5].data(), 1, MPI_INT, world, next());
  EXPECT_MOVED(MPI_Ialltoall, 4 * p, 4 * p);
  MPI_Iallgatherv(in[6].data(), 2, MPI_INT, out[6].data(), counts.data(), places.data(), MPI_INT,
                  world, next());
  EXPECT_MOVED(MPI_Iallgatherv, 8, 8 * p);
  MPI_Ialltoallv(in[7].data(), counts.data(), places.data(), MPI_INT, out[7].data(), counts.data(),
                 places.data(), MPI_INT, world, next());
  EXPECT_MOVED(MPI_Ialltoallv, 8 * p, 8 * p);
  MPI_Ireduce_scatter(in[8].data(), out[8].data(), counts.data(), MPI_INT, MPI_SUM, world, next());
  EXPECT_MOVED(MPI_Ireduce_scatter, 8 * p, 8);
  MPI_Iscan(in[9].data(), out[9].data(), 3, MPI_INT, MPI_SUM, world, next());
  EXPECT_MOVED(MPI_Iscan, 12, 12);
  MPI_Iexscan(in[11].data(), out[11].data(), 3, MPI_INT, MPI_SUM, world, next());
  EXPECT_MOVED(MPI_Iexscan, 12, root ? 0 : 12);
  MPI_Ireduce_scatter_block(in[12].data(), out[12].data(), 2, MPI_INT, MPI_SUM, world, next());
  EXPECT_MOVED(MPI_Ireduce_scatter_block, 8 * p, 8);
  MPI_Igatherv(in[13].data(), 2, MPI_INT, out[13].data(), counts.data(), places.data(), MPI_INT, 0,
               world, next());
  EXPECT_MOVED(MPI_Igatherv, 8, root ? 8 * p : 0);
  MPI_Iscatterv(in[14].data(), counts.data(), places.data(), MPI_INT, out[14].data(), 2, MPI_INT, 0,
                world, next());
  EXPECT_MOVED(MPI_Iscatterv, root ? 8 * p : 0, 8);
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  EXPECT_CALLED(MPI_Waitall);
  std::vector<MPI_Datatype> types(n, MPI_INT);
  for (auto& place : places) place *= 4;  // in bytes
  MPI_Alltoallw(in[10].data(), counts.data(), places.data(), types.data(), out[10].data(),
                counts.data(), places.data(), types.data(), world);
  EXPECT_MOVED(MPI_Alltoallw, 8 * p, 8 * p);
  MPI_Request request;
  MPI_Ialltoallw(in[10].data(), counts.data(), places.data(), types.data(), out[10].data(),
                 counts.data(), places.data(), types.data(), world, &request);
  EXPECT_MOVED(MPI_Ialltoallw, 8 * p, 8 * p);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_CALLED(MPI_Wait);
}
