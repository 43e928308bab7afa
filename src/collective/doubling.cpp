// Recursive doubling: the distance between partners doubles, so ceil(log2 P) exchanges suffice.
// Everything travels in each of them: for short messages.
#include "collective/doubling.hpp"

#include "collective/generators.hpp"
#include "collective/places.hpp"

namespace sinew {

void double_among(Builder& b, std::span<const int> ranks, int index, Chunks sum, Chunks other) {
  const Fold fold(index, static_cast<int>(ranks.size()));
  const auto peer = [&](int at) { return ranks[static_cast<std::size_t>(at)]; };
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

Schedule allreduce_recursive_doubling(const Place& at) {
  Builder b("recursive_doubling", at.rank, at.size, 1, 1);
  std::vector<int> all(static_cast<std::size_t>(at.size));
  for (int rank = 0; rank < at.size; ++rank) all[static_cast<std::size_t>(rank)] = rank;
  const auto other = scratch(b.add_scratch(0, 1));
  b.copy(in(0), out(0));
  b.next_round();
  double_among(b, all, at.rank, out(0), other);
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
