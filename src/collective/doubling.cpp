// Recursive doubling: the distance between partners doubles, so ceil(log2 P) exchanges suffice.
// Everything travels in each of them: for short messages.
#include "collective/doubling.hpp"

#include "collective/generators.hpp"
#include "collective/places.hpp"

namespace sinew {
namespace {

// `peer` is the rank at an index, so that no list is needed where that is the index itself.
template <class Peer>
void double_with(Builder& b, int size, int index, Peer peer, Chunks sum, Chunks other) {
  const Fold fold(index, size);
  const bool pairs_up = index < 2 * fold.extra;
  const bool hands_over = pairs_up && fold.index < 0;
  if (hands_over) b.send(peer(index + 1), sum);
  if (pairs_up && !hands_over) b.recv_reduce(peer(index - 1), sum);
  b.next_round();
  for (int distance = 1; distance < fold.kept; distance *= 2) {
    if (!hands_over) {
      const int partner = peer(fold.rank_at(fold.index ^ distance));
      b.send(partner, sum);
      b.recv(partner, other);
    }
    b.next_round();
    // A round of its own: what is being sent must not change meanwhile.
    if (!hands_over) b.reduce(other, sum);
    b.next_round();
  }
  if (hands_over) b.recv(peer(index + 1), sum);
  if (pairs_up && !hands_over) b.send(peer(index - 1), sum);
  b.next_round();
}

}  // namespace

void double_among(Builder& b, std::span<const int> ranks, int index, Chunks sum, Chunks other) {
  const auto peer = [&](int at) { return ranks[static_cast<std::size_t>(at)]; };
  double_with(b, static_cast<int>(ranks.size()), index, peer, sum, other);
}

Schedule allreduce_recursive_doubling(const Place& at) {
  Builder b("recursive_doubling", at.rank, at.size, 1, 1);
  const auto other = scratch(b.add_scratch(0, 1));
  b.copy(in(0), out(0));
  b.next_round();
  double_with(
      b, at.size, at.rank, [](int index) { return index; }, out(0), other);
  return b.finish(b.round());
}

Schedule allgather_recursive_doubling(const Place& at) {
  Builder b("recursive_doubling", at.rank, at.size, 1, u32(at.size));
  b.copy(in(0), out(u32(at.rank)));
  for (int distance = 1; distance < at.size; distance *= 2) {
    b.next_round();
    const int partner = at.rank ^ distance;
    b.send(partner, out(u32(at.rank & ~(distance - 1)), u32(distance)));
    b.recv(partner, out(u32(partner & ~(distance - 1)), u32(distance)));
  }
  return b.finish(b.round() + 1);
}

Schedule barrier_dissemination(const Place& at) {
  Builder b("dissemination", at.rank, at.size, 0, 0);
  for (int distance = 1; distance < at.size; distance *= 2) {
    b.send(wrap(at.rank + distance, at.size), in(0, 0));
    b.recv(wrap(at.rank - distance, at.size), out(0, 0));
    b.next_round();
  }
  return b.finish(b.round());
}

}  // namespace sinew
