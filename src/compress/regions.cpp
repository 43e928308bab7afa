#include "compress/regions.hpp"

#include <algorithm>

namespace sinew {

void put_quantiles(std::span<const std::uint32_t> indices, std::span<std::uint64_t> words) {
  words[0] = indices.size();
  for (std::size_t i = 0; i < kQuantiles; ++i)
    words[i + 1] = indices.empty() ? 0 : indices[(2 * i + 1) * indices.size() / (2 * kQuantiles)];
}

std::vector<std::uint64_t> equal_regions(int size, std::uint64_t elements) {
  const auto ranks = static_cast<std::uint64_t>(std::max(1, size));
  std::vector<std::uint64_t> boundaries;
  // elements / ranks * i could not overflow, but would leave all of the rest to the last.
  for (std::uint64_t i = 0; i <= ranks; ++i)
    boundaries.push_back(elements / ranks * i + std::min(i, elements % ranks));
  return boundaries;
}

std::vector<std::uint64_t> balanced_regions(std::span<const std::uint64_t> words, int size,
                                            std::uint64_t elements) {
  struct Point {
    std::uint64_t coordinate, weight;  // items, times kQuantiles
  };
  std::vector<Point> points;
  std::uint64_t total = 0;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(size); ++rank) {
    const auto mine = words.subspan(rank * (kQuantiles + 1), kQuantiles + 1);
    if (mine[0] == 0) continue;
    for (const auto coordinate : mine.subspan(1)) points.push_back({coordinate, mine[0]});
    total += mine[0] * kQuantiles;
  }
  if (total == 0) return equal_regions(size, elements);
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.coordinate < b.coordinate; });
  std::vector<std::uint64_t> boundaries{0};
  const auto ranks = static_cast<std::uint64_t>(size);
  std::uint64_t before = 0;
  for (const auto& point : points) {
    // Boundary i lies where i / size of the weight lies before it.
    while (boundaries.size() < ranks &&
           before + point.weight / 2 >= total / ranks * boundaries.size())
      boundaries.push_back(std::min(point.coordinate, elements));
    before += point.weight;
  }
  while (boundaries.size() <= ranks) boundaries.push_back(elements);
  return boundaries;
}

}  // namespace sinew
