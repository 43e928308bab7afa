// Pull: like direct, but nothing is copied into slots. A rank tells where its data lies, and
// whoever needs it reads it there, out of its private memory; then all wait until everybody has
// read. Reductions are split and in rank order as there.
#include "collective/generators.hpp"
#include "collective/places.hpp"
#include "schedule/builder.hpp"

namespace sinew {
namespace {

// What others read may change only when all are known to be done with it.
Schedule finish_when_read(Builder& b) {
  b.by_reference();
  b.next_round();
  b.publish(in(0, 0), 0);
  b.next_round();
  b.wait_for_all();
  return b.finish(b.round() + 1);
}

}  // namespace

Schedule allreduce_pull(const Place& at) {
  const auto me = u32(at.rank), size = u32(at.size);
  Builder b("pull", at.rank, at.size, size, size);
  b.board_chunks(size + 1);  // the inputs, and the part this rank completes
  b.publish(in(0, size), 0);
  b.next_round();
  b.gather_reduce(in(me), me, out(me));
  b.next_round();
  b.publish(out(me), size);
  b.next_round();
  for_others(at, [&](int peer) { b.gather_copy(peer, size, out(u32(peer))); });
  return finish_when_read(b);
}

Schedule reduce_scatter_pull(const Place& at) {
  const auto me = u32(at.rank), size = u32(at.size);
  Builder b("pull", at.rank, at.size, size, 1);
  b.board_chunks(size);
  b.publish(in(0, size), 0);
  b.next_round();
  b.gather_reduce(in(me), me, out(0));
  return finish_when_read(b);
}

Schedule broadcast_pull(const Place& at) {
  Builder b("pull", at.rank, at.size, 1, 1);
  b.board_chunks(1);
  if (at.rank == at.root) {
    b.publish(in(0), 0);
    b.copy(in(0), out(0));
  }
  b.next_round();
  if (at.rank != at.root) b.gather_copy(at.root, 0, out(0));
  return finish_when_read(b);
}

Schedule allgather_pull(const Place& at) {
  Builder b("pull", at.rank, at.size, 1, u32(at.size));
  b.board_chunks(1);
  b.publish(in(0), 0);
  b.copy(in(0), out(u32(at.rank)));
  b.next_round();
  for_others(at, [&](int peer) { b.gather_copy(peer, 0, out(u32(peer))); });
  return finish_when_read(b);
}

Schedule alltoall_pull(const Place& at) {
  const auto me = u32(at.rank), size = u32(at.size);
  Builder b("pull", at.rank, at.size, size, size);
  b.board_chunks(size);
  b.publish(in(0, size), 0);
  b.copy(in(me), out(me));
  b.next_round();
  for_others(at, [&](int peer) { b.gather_copy(peer, me, out(u32(peer))); });
  return finish_when_read(b);
}

}  // namespace sinew
