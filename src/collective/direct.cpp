// Direct: each rank takes what it needs straight from the others' shared slots, in one pass and in
// rank order. Reductions are split so that every rank combines one part of everybody's data.
#include "collective/generators.hpp"
#include "collective/places.hpp"
#include "schedule/builder.hpp"

namespace sinew {
namespace {

// Everything but my own part, which nobody else needs.
void publish_others(Builder& b, const Place& at) {
  const auto me = u32(at.rank), size = u32(at.size);
  if (me > 0) b.publish(in(0, me), 0);
  if (me + 1 < size) b.publish(in(me + 1, size - me - 1), me + 1);
}

// Peers in rotated order, so that not all ranks read the same slot at once.
template <class Visit>
void for_others(const Place& at, Visit visit) {
  for (int k = 1; k < at.size; ++k) visit(wrap(at.rank + k, at.size));
}

}  // namespace

Schedule allreduce_direct(const Place& at) {
  const auto me = u32(at.rank), size = u32(at.size);
  Builder b("direct", at.rank, at.size, size, size);
  b.board_chunks(size + 1);  // the inputs, and the part this rank completes
  publish_others(b, at);
  b.next_round();
  b.gather_reduce(in(me), me, out(me));
  b.next_round();
  b.publish(out(me), size);
  b.next_round();
  for_others(at, [&](int peer) { b.gather_copy(peer, size, out(u32(peer))); });
  return b.finish(4);
}

Schedule reduce_direct(const Place& at) {
  const auto me = u32(at.rank), size = u32(at.size);
  Builder b("direct", at.rank, at.size, size, size);
  b.board_chunks(size + 1);
  const auto room = scratch(b.add_scratch(me, 1));
  const bool is_root = at.rank == at.root;
  publish_others(b, at);
  b.next_round();
  b.gather_reduce(in(me), me, is_root ? out(me) : room);
  b.next_round();
  if (!is_root) b.publish(room, size);
  b.next_round();
  if (is_root) for_others(at, [&](int peer) { b.gather_copy(peer, size, out(u32(peer))); });
  return b.finish(4);
}

Schedule reduce_scatter_direct(const Place& at) {
  const auto me = u32(at.rank), size = u32(at.size);
  Builder b("direct", at.rank, at.size, size, 1);
  b.board_chunks(size);
  publish_others(b, at);
  b.next_round();
  b.gather_reduce(in(me), me, out(0));
  return b.finish(2);
}

Schedule broadcast_direct(const Place& at) {
  Builder b("direct", at.rank, at.size, 1, 1);
  b.board_chunks(1);
  if (at.rank == at.root) {
    b.publish(in(0), 0);
    b.copy(in(0), out(0));
  }
  b.next_round();
  if (at.rank != at.root) b.gather_copy(at.root, 0, out(0));
  return b.finish(2);
}

Schedule allgather_direct(const Place& at) {
  Builder b("direct", at.rank, at.size, 1, u32(at.size));
  b.board_chunks(1);
  b.publish(in(0), 0);
  b.copy(in(0), out(u32(at.rank)));
  b.next_round();
  for_others(at, [&](int peer) { b.gather_copy(peer, 0, out(u32(peer))); });
  return b.finish(2);
}

Schedule alltoall_direct(const Place& at) {
  const auto me = u32(at.rank);
  Builder b("direct", at.rank, at.size, u32(at.size), u32(at.size));
  b.board_chunks(u32(at.size));
  publish_others(b, at);
  b.copy(in(me), out(me));
  b.next_round();
  for_others(at, [&](int peer) { b.gather_copy(peer, me, out(u32(peer))); });
  return b.finish(2);
}

Schedule scatter_direct(const Place& at) {
  Builder b("direct", at.rank, at.size, u32(at.size), 1);
  b.board_chunks(u32(at.size));
  if (at.rank == at.root) {
    publish_others(b, at);
    b.copy(in(u32(at.rank)), out(0));
  }
  b.next_round();
  if (at.rank != at.root) b.gather_copy(at.root, u32(at.rank), out(0));
  return b.finish(2);
}

Schedule gather_direct(const Place& at) {
  Builder b("direct", at.rank, at.size, 1, u32(at.size));
  b.board_chunks(1);
  if (at.rank == at.root) b.copy(in(0), out(u32(at.rank)));
  if (at.rank != at.root) b.publish(in(0), 0);
  b.next_round();
  if (at.rank == at.root) for_others(at, [&](int peer) { b.gather_copy(peer, 0, out(u32(peer))); });
  return b.finish(2);
}

// Buffers that live in shared memory need no slots: each rank reduces its part out of everybody's
// input and writes it into everybody's output.
Schedule allreduce_shared(const Place& at) {
  const auto me = u32(at.rank), size = u32(at.size);
  Builder b("shared", at.rank, at.size, size, size);
  b.publish(in(0, 0), 0);
  b.next_round();
  b.gather_reduce_all(in(me), out(me));
  b.next_round();
  b.wait_for_all();
  return b.finish(3);
}

}  // namespace sinew
