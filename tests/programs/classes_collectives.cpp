// Collectives.
#include "expected.hpp"

void collectives() {
  const auto p = static_cast<std::uint64_t>(size);
  const auto n = static_cast<std::size_t>(size);
  auto in = buffer(100 * n), out = buffer(100 * n);
  const bool root = rank == 1;
  MPI_Barrier(MPI_COMM_WORLD);
  expect("MPI_Barrier", 0, 0);
  MPI_Bcast(in.data(), 100, MPI_INT, 1, MPI_COMM_WORLD);
  expect("MPI_Bcast", root ? 400 : 0, root ? 0 : 400);
  MPI_Reduce(in.data(), out.data(), 50, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
  expect("MPI_Reduce", 200, root ? 200 : 0);
  MPI_Allreduce(MPI_IN_PLACE, out.data(), 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  expect("MPI_Allreduce", 64, 64);
  MPI_Scan(in.data(), out.data(), 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("MPI_Scan", 20, 20);
  MPI_Exscan(in.data(), out.data(), 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("MPI_Exscan", 20, rank == 0 ? 0 : 20);
  // Arguments that mean nothing on a rank may be anything.
  MPI_Gather(in.data(), 10, MPI_INT, root ? out.data() : nullptr, root ? 10 : -7,
             root ? MPI_INT : MPI_DATATYPE_NULL, 1, MPI_COMM_WORLD);
  expect("MPI_Gather", 40, root ? 40 * p : 0);
  MPI_Gather(root ? MPI_IN_PLACE : static_cast<void*>(in.data()), root ? 0 : 10,
             root ? MPI_DATATYPE_NULL : MPI_INT, root ? out.data() : nullptr, 10,
             root ? MPI_INT : MPI_DATATYPE_NULL, 1, MPI_COMM_WORLD);
  expect("MPI_Gather", 40, root ? 40 * p : 0);
  MPI_Scatter(root ? in.data() : nullptr, root ? 10 : 0, root ? MPI_INT : MPI_DATATYPE_NULL,
              out.data(), 10, MPI_INT, 1, MPI_COMM_WORLD);
  expect("MPI_Scatter", root ? 40 * p : 0, 40);
  MPI_Allgather(in.data(), 10, MPI_INT, out.data(), 10, MPI_INT, MPI_COMM_WORLD);
  expect("MPI_Allgather", 40, 40 * p);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out.data(), 10, MPI_INT, MPI_COMM_WORLD);
  expect("MPI_Allgather", 40, 40 * p);
  MPI_Alltoall(in.data(), 10, MPI_INT, out.data(), 10, MPI_INT, MPI_COMM_WORLD);
  expect("MPI_Alltoall", 40 * p, 40 * p);
  std::vector<int> counts(n), places(n);
  int total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    counts[i] = static_cast<int>(i) + 1;
    places[i] = total;
    total += counts[i];
  }
  const auto all = static_cast<std::uint64_t>(total) * 4;
  const auto own = static_cast<std::uint64_t>(rank + 1) * 4;
  MPI_Allgatherv(in.data(), rank + 1, MPI_INT, out.data(), counts.data(), places.data(), MPI_INT,
                 MPI_COMM_WORLD);
  expect("MPI_Allgatherv", own, all);
  MPI_Gatherv(in.data(), rank + 1, MPI_INT, out.data(), root ? counts.data() : nullptr,
              root ? places.data() : nullptr, MPI_INT, 1, MPI_COMM_WORLD);
  expect("MPI_Gatherv", own, root ? all : 0);
  MPI_Scatterv(in.data(), root ? counts.data() : nullptr, root ? places.data() : nullptr, MPI_INT,
               out.data(), rank + 1, MPI_INT, 1, MPI_COMM_WORLD);
  expect("MPI_Scatterv", root ? all : 0, own);
  MPI_Reduce_scatter(in.data(), out.data(), counts.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("MPI_Reduce_scatter", all, own);
  MPI_Reduce_scatter_block(in.data(), out.data(), 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("MPI_Reduce_scatter_block", 12 * p, 12);
  const std::vector<int> same(n, rank + 1);
  std::vector<int> apart(n);
  for (std::size_t i = 0; i < n; ++i) apart[i] = static_cast<int>(i) * 10;
  MPI_Alltoallv(in.data(), same.data(), apart.data(), MPI_INT, out.data(), counts.data(),
                apart.data(), MPI_INT, MPI_COMM_WORLD);
  expect("MPI_Alltoallv", own * p, all);
  MPI_Request request;
  MPI_Iallreduce(in.data(), out.data(), 7, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect("MPI_Iallreduce", 28, 28);
  expect("MPI_Wait", 0, 0);
}

// The non-blocking forms, all under way together.
void many_to_many_at_once() {
  const auto p = static_cast<std::uint64_t>(size);
  const auto n = static_cast<std::size_t>(size);
  const bool root = rank == 0;
  std::vector<std::vector<int>> in(12, buffer(10 * n)), out(12, buffer(10 * n));
  std::vector<int> counts(n, 2), places(n);
  for (std::size_t i = 0; i < n; ++i) places[i] = 2 * static_cast<int>(i);
  std::vector<MPI_Request> requests;
  const auto next = [&] { return &requests.emplace_back(); };
  requests.reserve(20);
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Ibarrier(world, next());
  expect("MPI_Ibarrier", 0, 0);
  MPI_Ibcast(in[0].data(), 3, MPI_INT, 0, world, next());
  expect("MPI_Ibcast", root ? 12 : 0, root ? 0 : 12);
  MPI_Ireduce(in[1].data(), out[1].data(), 3, MPI_INT, MPI_SUM, 0, world, next());
  expect("MPI_Ireduce", 12, root ? 12 : 0);
  MPI_Igather(in[2].data(), 1, MPI_INT, out[2].data(), 1, MPI_INT, 0, world, next());
  expect("MPI_Igather", 4, root ? 4 * p : 0);
  MPI_Iscatter(in[3].data(), 1, MPI_INT, out[3].data(), 1, MPI_INT, 0, world, next());
  expect("MPI_Iscatter", root ? 4 * p : 0, 4);
  MPI_Iallgather(in[4].data(), 1, MPI_INT, out[4].data(), 1, MPI_INT, world, next());
  expect("MPI_Iallgather", 4, 4 * p);
  MPI_Ialltoall(in[5].data(), 1, MPI_INT, out[5].data(), 1, MPI_INT, world, next());
  expect("MPI_Ialltoall", 4 * p, 4 * p);
  MPI_Iallgatherv(in[6].data(), 2, MPI_INT, out[6].data(), counts.data(), places.data(), MPI_INT,
                  world, next());
  expect("MPI_Iallgatherv", 8, 8 * p);
  MPI_Ialltoallv(in[7].data(), counts.data(), places.data(), MPI_INT, out[7].data(), counts.data(),
                 places.data(), MPI_INT, world, next());
  expect("MPI_Ialltoallv", 8 * p, 8 * p);
  MPI_Ireduce_scatter(in[8].data(), out[8].data(), counts.data(), MPI_INT, MPI_SUM, world, next());
  expect("MPI_Ireduce_scatter", 8 * p, 8);
  MPI_Iscan(in[9].data(), out[9].data(), 3, MPI_INT, MPI_SUM, world, next());
  expect("MPI_Iscan", 12, 12);
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  expect("MPI_Waitall", 0, 0);
  std::vector<MPI_Datatype> types(n, MPI_INT);
  for (auto& place : places) place *= 4;  // in bytes
  MPI_Alltoallw(in[10].data(), counts.data(), places.data(), types.data(), out[10].data(),
                counts.data(), places.data(), types.data(), world);
  expect("MPI_Alltoallw", 8 * p, 8 * p);
}
