// The k-th largest magnitude over the items of all ranks, by a histogram of a few kilobytes and
// what falls into the bin of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sinew/scheme.hpp>
#include "kernel/select.hpp"

namespace sinew {

class GlobalThreshold {
 public:
  /// What this rank keeps of its values: those above `least`, and the first `ties` equal to it (or
  /// all, if there are fewer).
  /// Over all ranks that makes exactly min(k, values), ties by lowest rank and then lowest index.
  struct Share {
    Magnitude least = 0;
    std::uint64_t ties = 0;
  };
  /// Called by all ranks. The digits of a magnitude take an allreduce each, until those that share
  /// the digits found so far are few: then everybody gets to see them.
  Share find(Exchange& x, std::span<const float> values, std::uint64_t k);
  /// What was found last; 0: nothing yet.
  [[nodiscard]] Magnitude last() const noexcept { return last_; }

 private:
  /// Nothing: the k-th does not lie among the bins from `least` on.
  std::optional<Share> search(Exchange& x, std::span<const float> values, std::uint64_t k,
                              Magnitude least, int shift);
  Share remember(Share share);
  void add_up(Exchange& x);
  Share among_all(Exchange& x, std::span<const float> mine, std::uint64_t all,
                  std::uint64_t wanted);
  void gather(Exchange& x, std::span<const float> mine, std::uint64_t all);
  Share by_ties(Exchange& x, Magnitude least, std::uint64_t mine, std::uint64_t wanted);

  Magnitude last_ = 0;                        // what was found in the last step; the same on all
  std::vector<std::uint32_t> mine_, counts_;  // of this rank, of all
  std::vector<std::uint64_t> of_ranks_;
  std::vector<std::int32_t> words_, all_words_;
  std::vector<std::size_t> sizes_;
  std::vector<float> near_;  // those that share the digits found so far with the k-th
  std::vector<float> all_near_, sorted_;
};

}  // namespace sinew
