// Recursive halving, then doubling (Rabenseifner): bytes like a ring, rounds like a tree. Rank
// counts that are not a power of two first fold the surplus ranks into their neighbours.
#include "collective/generators.hpp"
#include "collective/places.hpp"
#include "schedule/builder.hpp"

namespace sinew {
namespace {

// Chunks [first, first + count) that `index` holds after halving down to windows of `count`.
std::uint32_t window(int index, int count) { return u32(index & ~(count - 1)); }

}  // namespace

Schedule allreduce_halving_doubling(const Place& at) {
  const Fold fold(at.rank, at.size);
  const auto chunks = u32(fold.kept);
  Builder b("halving_doubling", at.rank, at.size, chunks, chunks);
  b.copy(in(0, chunks), out(0, chunks));
  b.next_round();
  const bool pairs_up = at.rank < 2 * fold.extra;
  const bool hands_over = fold.index < 0;
  if (hands_over) b.send(at.rank + 1, out(0, chunks));
  if (pairs_up && !hands_over) b.recv_reduce(at.rank - 1, out(0, chunks));
  b.next_round();
  for (int half = fold.kept / 2; half >= 1; half /= 2, b.next_round()) {
    if (hands_over) continue;
    const int partner = fold.index ^ half;
    b.send(fold.rank_at(partner), out(window(partner, half), u32(half)));
    b.recv_reduce(fold.rank_at(partner), out(window(fold.index, half), u32(half)));
  }
  for (int have = 1; have < fold.kept; have *= 2, b.next_round()) {
    if (hands_over) continue;
    const int partner = fold.index ^ have;
    b.send(fold.rank_at(partner), out(window(fold.index, have), u32(have)));
    b.recv(fold.rank_at(partner), out(window(partner, have), u32(have)));
  }
  if (hands_over) b.recv(at.rank + 1, out(0, chunks));
  if (pairs_up && !hands_over) b.send(at.rank - 1, out(0, chunks));
  return b.finish(b.round() + 1);
}

Schedule reduce_scatter_recursive_halving(const Place& at) {
  const auto chunks = u32(at.size);
  Builder b("recursive_halving", at.rank, at.size, chunks, 1);
  b.add_scratch(0, chunks);
  b.copy(in(0, chunks), scratch(0, chunks));
  b.next_round();
  for (int half = at.size / 2; half >= 1; half /= 2, b.next_round()) {
    const int partner = at.rank ^ half;
    b.send(partner, scratch(window(partner, half), u32(half)));
    b.recv_reduce(partner, scratch(window(at.rank, half), u32(half)));
  }
  b.copy(scratch(u32(at.rank)), out(0));
  return b.finish(b.round() + 1);
}

}  // namespace sinew
