// Pull: the schedules of direct, but nothing is copied into slots. A rank tells where its data
// lies, and whoever needs it reads it there, out of its private memory; then all wait until
// everybody has read.
#include "collective/generators.hpp"
#include "schedule/builder.hpp"

namespace sinew {
namespace {

// What others read may change only when all are known to be done with it.
Schedule by_reference(Schedule schedule) {
  schedule.name = "pull";
  schedule.by_reference = true;
  schedule.steps.push_back({.op = Op::publish, .round = schedule.rounds, .board = on_board(0, 0)});
  schedule.steps.push_back(
      {.op = Op::gather_copy, .round = schedule.rounds + 1, .board = on_board(0, 0)});
  schedule.rounds += 2;
  return schedule;
}

}  // namespace

Schedule allreduce_pull(const Place& at) { return by_reference(allreduce_direct(at)); }
Schedule reduce_scatter_pull(const Place& at) { return by_reference(reduce_scatter_direct(at)); }
Schedule broadcast_pull(const Place& at) { return by_reference(broadcast_direct(at)); }
Schedule allgather_pull(const Place& at) { return by_reference(allgather_direct(at)); }
Schedule alltoall_pull(const Place& at) { return by_reference(alltoall_direct(at)); }

}  // namespace sinew
