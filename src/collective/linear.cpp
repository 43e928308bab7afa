// Linear: the root talks to everyone directly. Reductions take the ranks in order, so the result
// has the bits of ((0 op 1) op 2) ... whatever the size.
#include "collective/generators.hpp"
#include "collective/places.hpp"
#include "schedule/builder.hpp"

namespace sinew {
namespace {

// The root combines its chunk `own` with what everybody sends, in rank order, into `result`.
// With rank 0 elsewhere the sum cannot start in place: it grows in `room`, then moves.
void collect_in_order(Builder& b, int size, int root, Chunks own, Chunks result, Chunks room) {
  const auto sum = root == 0 ? result : room;
  if (root == 0) b.copy(own, sum);
  for (int rank = root == 0 ? 1 : 0; rank < size; ++rank) {
    b.next_round();
    if (rank == root)
      b.reduce(own, sum);
    else if (rank == 0)
      b.recv(rank, sum);
    else
      b.recv_reduce(rank, sum);
  }
  if (root != 0) {
    b.next_round();
    b.copy(sum, result);
  }
}

}  // namespace

Schedule reduce_linear(const Place& at) {
  Builder b("linear", at.rank, at.size, 1, 1);
  const auto room = scratch(b.add_scratch(0, 1));
  if (at.rank == at.root)
    collect_in_order(b, at.size, at.root, in(0), out(0), room);
  else
    b.send(at.root, in(0));
  return b.finish(u32(at.size + 2));
}

Schedule allreduce_linear(const Place& at) {
  Builder b("linear", at.rank, at.size, 1, 1);
  if (at.rank == 0)
    collect_in_order(b, at.size, 0, in(0), out(0), {});
  else
    b.send(0, in(0));
  b.at(u32(at.size));
  for (int rank = 1; rank < at.size; ++rank)
    if (at.rank == 0) b.send(rank, out(0));
  if (at.rank != 0) b.recv(0, out(0));
  return b.finish(u32(at.size + 1));
}

// In round k rank k sends everyone's part and everyone takes it: rank order without a deadlock.
Schedule reduce_scatter_linear(const Place& at) {
  Builder b("linear", at.rank, at.size, u32(at.size), 1);
  const auto own = in(u32(at.rank));
  const auto room = scratch(b.add_scratch(u32(at.rank), 1));
  const auto sum = at.rank == 0 ? out(0) : room;
  for (int from = 0; from < at.size; ++from, b.next_round()) {
    for (int to = 0; from == at.rank && to < at.size; ++to)
      if (to != at.rank) b.send(to, in(u32(to)));
    if (from == at.rank && from == 0) b.copy(own, sum);
    if (from == at.rank && from != 0) b.reduce(own, sum);
    if (from != at.rank && from == 0) b.recv(from, sum);
    if (from != at.rank && from != 0) b.recv_reduce(from, sum);
  }
  if (at.rank != 0) b.copy(sum, out(0));
  return b.finish(u32(at.size + 1));
}

Schedule broadcast_linear(const Place& at) {
  Builder b("linear", at.rank, at.size, 1, 1);
  if (at.rank == at.root) b.copy(in(0), out(0));
  for (int k = 1; at.rank == at.root && k < at.size; ++k) b.send(wrap(at.rank + k, at.size), in(0));
  if (at.rank != at.root) b.recv(at.root, out(0));
  return b.finish(1);
}

Schedule scatter_linear(const Place& at) {
  Builder b("linear", at.rank, at.size, u32(at.size), 1);
  if (at.rank == at.root) b.copy(in(u32(at.rank)), out(0));
  for (int k = 1; at.rank == at.root && k < at.size; ++k) {
    const int to = wrap(at.rank + k, at.size);
    b.send(to, in(u32(to)));
  }
  if (at.rank != at.root) b.recv(at.root, out(0));
  return b.finish(1);
}

Schedule gather_linear(const Place& at) {
  Builder b("linear", at.rank, at.size, 1, u32(at.size));
  if (at.rank == at.root) b.copy(in(0), out(u32(at.rank)));
  for (int k = 1; at.rank == at.root && k < at.size; ++k) {
    const int from = wrap(at.rank + k, at.size);
    b.recv(from, out(u32(from)));
  }
  if (at.rank != at.root) b.send(at.root, in(0));
  return b.finish(1);
}

Schedule allgather_linear(const Place& at) {
  Builder b("linear", at.rank, at.size, 1, u32(at.size));
  b.copy(in(0), out(u32(at.rank)));
  for (int k = 1; k < at.size; ++k) {
    const int to = wrap(at.rank + k, at.size), from = wrap(at.rank - k, at.size);
    b.send(to, in(0));
    b.recv(from, out(u32(from)));
  }
  return b.finish(1);
}

Schedule alltoall_linear(const Place& at) {
  Builder b("linear", at.rank, at.size, u32(at.size), u32(at.size));
  b.copy(in(u32(at.rank)), out(u32(at.rank)));
  for (int k = 1; k < at.size; ++k) {
    const int to = wrap(at.rank + k, at.size), from = wrap(at.rank - k, at.size);
    b.send(to, in(u32(to)));
    b.recv(from, out(u32(from)));
  }
  return b.finish(1);
}

}  // namespace sinew
