#include "train/transcript.hpp"

#include <algorithm>
#include <numeric>

namespace sinew {

std::vector<std::int64_t> collapse(std::span<const std::int64_t> best_of_frames) {
  std::vector<std::int64_t> labels;
  std::int64_t last = 0;
  for (const auto label : best_of_frames) {
    if (label != last && label != 0) labels.push_back(label);
    last = label;
  }
  return labels;
}

std::uint64_t edit_distance(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  std::vector<std::uint64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::uint64_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = row[0]++;
    for (std::size_t k = 0; k < b.size(); ++k) {
      const auto change = diagonal + (a[i] == b[k] ? 0 : 1);
      diagonal = row[k + 1];
      row[k + 1] = std::min({change, diagonal + 1, row[k] + 1});
    }
  }
  return row.back();
}

}  // namespace sinew
