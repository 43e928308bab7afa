#include "collective/sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace sinew {
namespace {

std::vector<std::vector<int>> node_maps(int size) {
  std::vector<int> halves, blocks, robin, uneven;
  for (int rank = 0; rank < size; ++rank) {
    halves.push_back(2 * rank / size);
    blocks.push_back(rank / 3);
    robin.push_back(rank % 3);
    uneven.push_back(rank == 0 ? 0 : 1);
  }
  return {{}, halves, blocks, robin, uneven};
}

}  // namespace

World Setting::world() const { return make_world(*algorithm, size, root, segments, node_of); }

std::string to_string(const Setting& setting) {
  return fmt::format("{} {} P={} root={} segments={} nodes={}", name(setting.algorithm->collective),
                     setting.algorithm->name, setting.size, setting.root, setting.segments,
                     setting.node_of);
}

std::vector<Setting> settings(const Algorithm& algorithm, int size) {
  std::set<int> roots{0};
  if (has_root(algorithm.collective)) roots.insert({size / 2, size - 1});
  std::vector<std::uint32_t> depths{1};
  if (algorithm.traits.pipelines) depths = {1, 2, 5};
  std::vector<Setting> result;
  for (const auto& nodes : node_maps(size)) {
    if (!algorithm.fits({0, size, 0, 1, nodes}, kOneHost)) continue;
    for (const int root : roots)
      for (const auto segments : depths)
        result.push_back({&algorithm, size, root, segments, nodes});
    if (!algorithm.fits({0, size, 0, 1, {}}, kOneHost)) continue;
    break;  // one map is enough for those that do not look at it
  }
  return result;
}

std::vector<Conditions> conditions(const Algorithm& algorithm) {
  std::vector<Conditions> all{{.sends = Sends::buffered},
                              {.sends = Sends::synchronous},
                              {.exposure = Exposure::referenced}};
  if (algorithm.traits.in_place) all.push_back({.placement = Placement::in_place});
  return all;
}

std::string to_string(const Conditions& conditions) {
  std::string text = conditions.sends == Sends::buffered ? "buffered sends" : "synchronous sends";
  if (conditions.placement == Placement::in_place) text += ", in place";
  if (conditions.exposure == Exposure::referenced) text += ", published by reference";
  return text;
}

}  // namespace sinew
