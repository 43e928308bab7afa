// The k-th largest magnitude over the items of all ranks, by histograms of a few kilobytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sinew/scheme.hpp>
#include "kernel/select.hpp"

namespace sinew {

class GlobalThreshold {
 public:
  /// What this rank keeps of its values: those above `least`, and the first `ties` equal to it.
  /// Over all ranks that makes exactly min(k, values), ties by lowest rank and then lowest index.
  struct Share {
    Magnitude least = 0;
    std::uint64_t ties = 0;
  };
  /// Called by all ranks. The three digits of a magnitude take an allreduce each, fewer where the
  /// first ones already tell the k apart.
  Share find(Exchange& x, std::span<const float> values, std::uint64_t k);

 private:
  std::vector<std::uint32_t> mine_;
  std::vector<std::uint64_t> counts_, ties_;
  std::vector<float> near_;  // those that share the digits found so far with the k-th
};

}  // namespace sinew
