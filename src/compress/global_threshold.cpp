#include "compress/global_threshold.hpp"

#include <algorithm>

namespace sinew {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

}  // namespace

GlobalThreshold::Share GlobalThreshold::find(Exchange& x, std::span<const float> values,
                                             std::uint64_t k) {
  constexpr struct {
    int shift;
    std::size_t bins;
  } kDigits[] = {{20, 2048}, {9, 2048}, {0, 512}};
  Magnitude least = 0;
  std::uint64_t larger = 0, tied = 0;
  for (const auto& [shift, bins] : kDigits) {
    mine_.assign(bins + 1, 0);  // the last is for what lies above the digit's range: nothing
    count_magnitudes(values, least, shift, mine_);
    counts_.assign(mine_.begin(), mine_.begin() + static_cast<std::ptrdiff_t>(bins));
    x.allreduce("thresholds", std::span(counts_));
    std::size_t bin = bins - 1;
    while (larger + counts_[bin] < k && bin > 0) larger += counts_[bin--];
    tied = counts_[bin];
    least += static_cast<Magnitude>(bin) << shift;
    if (larger + tied <= k) return {least, kAll};  // all that is at least `least`
    near_.resize(mine_[bin] + std::size_t{1});     // every element is stored, few stay
    std::size_t count = 0;
    for (const float value : values) {
      near_[count] = value;
      count += magnitude(value) - least < Magnitude{1} << shift ? 1 : 0;
    }
    values = std::span(near_).first(count);
  }
  const std::uint64_t mine = values.size();
  ties_.resize(static_cast<std::size_t>(x.size()));
  x.allgather("thresholds", std::span(&mine, 1), std::span(ties_));
  std::uint64_t left = k - larger;
  for (int rank = 0; rank < x.rank(); ++rank)
    left -= std::min(left, ties_[static_cast<std::size_t>(rank)]);
  return {least, std::min(left, mine)};
}

}  // namespace sinew
