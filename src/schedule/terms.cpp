#include "schedule/terms.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sinew {

Terms::Terms(int ranks, std::uint32_t chunks)
    : chunks_(chunks), first_pair_(1 + static_cast<TermId>(ranks) * chunks) {}

TermId Terms::leaf(int rank, std::uint32_t chunk) const noexcept {
  return 1 + static_cast<TermId>(rank) * chunks_ + chunk;
}

TermId Terms::combine(TermId a, TermId b) {
  if (a > b) std::swap(a, b);
  const auto next = first_pair_ + static_cast<TermId>(pairs_.size());
  const auto [at, fresh] = ids_.try_emplace(std::uint64_t{a} << 32 | b, next);
  if (fresh) pairs_.push_back({a, b});
  return at->second;
}

std::map<TermId, std::uint64_t> Terms::leaves(TermId term) const {
  // Parts have smaller ids than the whole, so taking the largest id first meets each part once,
  // however often it is shared.
  std::map<TermId, std::uint64_t> counts{{term, 1}};
  while (counts.rbegin()->first >= first_pair_) {
    const auto [id, count] = *counts.rbegin();
    counts.erase(id);
    const auto [a, b] = pairs_[id - first_pair_];
    counts[a] += count;
    counts[b] += count;
  }
  return counts;
}

std::string Terms::leaf_name(TermId leaf) const {
  if (leaf == kUndefined) return "nothing";
  const auto [rank, chunk] = origin(leaf);
  return fmt::format("rank {}'s chunk {}", rank, chunk);
}

}  // namespace sinew
