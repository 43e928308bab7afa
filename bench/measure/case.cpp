#include "measure/case.hpp"

#include <numeric>
#include <stdexcept>

namespace sinew::bench {

std::string_view name(Collective collective) noexcept {
  static constexpr std::array<std::string_view, kCollectives.size()> kNames{
      "allreduce", "reduce",    "broadcast", "allgather", "allgatherv", "reduce_scatter",
      "alltoall",  "alltoallv", "scatter",   "gather",    "barrier"};
  return kNames[static_cast<std::size_t>(collective)];
}

std::uint64_t elements_per_rank(const Case& what, int ranks) noexcept {
  return what.bytes / what.element_bytes / static_cast<std::uint64_t>(ranks);
}

std::uint64_t pair_elements(const Case& what, int from, int to, int ranks) noexcept {
  if (what.collective == Collective::alltoall) return elements_per_rank(what, ranks);
  return what.counts[static_cast<std::size_t>(from * ranks + to)];
}

Extent extent(const Case& what, int rank, int ranks) noexcept {
  const std::uint64_t vector = what.bytes / what.element_bytes;
  const std::uint64_t part = elements_per_rank(what, ranks);
  const std::uint64_t whole = part * static_cast<std::uint64_t>(ranks);
  const bool is_root = rank == what.root;
  switch (what.collective) {
    case Collective::allreduce:
      return {vector, vector};
    case Collective::reduce:
      return {vector, is_root ? vector : 0};
    case Collective::broadcast:
      return {0, vector};
    case Collective::allgather:
      return {part, whole};
    case Collective::allgatherv:
      return {what.counts[static_cast<std::size_t>(rank)],
              std::accumulate(what.counts.begin(), what.counts.end(), std::uint64_t{0})};
    case Collective::reduce_scatter:
      return {whole, part};
    case Collective::alltoall:
      return {whole, whole};
    case Collective::alltoallv: {
      Extent all;
      for (int peer = 0; peer < ranks; ++peer) {
        all.input += pair_elements(what, rank, peer, ranks);
        all.output += pair_elements(what, peer, rank, ranks);
      }
      return all;
    }
    case Collective::scatter:
      return {is_root ? whole : 0, part};
    case Collective::gather:
      return {part, is_root ? whole : 0};
    case Collective::barrier:
      break;
  }
  return {};
}

void check(const Case& what, int ranks) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(describe(what) + " with " + std::to_string(ranks) +
                                " ranks: " + why);
  };
  if (ranks < 1) refuse("at least one rank is needed");
  if (what.element_bytes == 0) refuse("elements have no size");
  if (what.root < 0 || what.root >= ranks) {
    refuse("root " + std::to_string(what.root) + " does not exist");
  }
  if (what.in_place && what.collective != Collective::allreduce) {
    refuse("only allreduce is measured in place");
  }
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t expected = what.collective == Collective::allgatherv  ? n
                               : what.collective == Collective::alltoallv ? n * n
                                                                          : 0;
  if (what.counts.size() != expected) {
    refuse("expected " + std::to_string(expected) + " counts, got " +
           std::to_string(what.counts.size()));
  }
}

std::string describe(const Case& what) {
  std::string text{name(what.collective)};
  if (what.collective == Collective::barrier) return text;
  const std::uint64_t counted =
      std::accumulate(what.counts.begin(), what.counts.end(), std::uint64_t{0});
  const std::uint64_t bytes = what.counts.empty() ? what.bytes : counted * what.element_bytes;
  text += " of " + std::to_string(bytes) + " B";
  if (!what.options.empty()) text += " (" + what.options + ")";
  return text;
}

}  // namespace sinew::bench
