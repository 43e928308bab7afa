// Flat: everyone publishes everything and combines all of it alone. One wait for any P, in rank
// order; the work grows with P, so this is for short messages in shared memory.
#include "collective/generators.hpp"
#include "schedule/builder.hpp"

namespace sinew {

Schedule allreduce_flat(const Place& at) {
  Builder b("flat", at.rank, at.size, 1, 1);
  b.board_chunks(1);
  b.publish(in(0), 0);
  b.next_round();
  b.gather_reduce(in(0), 0, out(0));
  return b.finish(2);
}

Schedule reduce_flat(const Place& at) {
  Builder b("flat", at.rank, at.size, 1, 1);
  b.board_chunks(1);
  if (at.rank != at.root) b.publish(in(0), 0);
  b.next_round();
  if (at.rank == at.root) b.gather_reduce(in(0), 0, out(0));
  return b.finish(2);
}

Schedule barrier_flat(const Place& at) {
  Builder b("flat", at.rank, at.size, 0, 0);
  b.publish(in(0, 0), 0);
  b.next_round();
  b.wait_for_all();
  return b.finish(2);
}

}  // namespace sinew
