#include "model/correction.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace sinew {
namespace {

double factor_at(const std::vector<Correction::Point>& points, double bytes) {
  if (points.empty()) return 1;
  if (bytes <= points.front().bytes) return points.front().factor;
  if (bytes >= points.back().bytes) return points.back().factor;
  const auto after = std::find_if(points.begin(), points.end(),
                                  [&](const auto& point) { return point.bytes >= bytes; });
  const auto before = std::prev(after);
  const double way = std::log(bytes / before->bytes) / std::log(after->bytes / before->bytes);
  return before->factor * std::pow(after->factor / before->factor, way);
}

}  // namespace

std::optional<double> correction(const Network& network, const Algorithm& algorithm,
                                 const Place& place, double bytes) {
  const auto& nodes = place.node_of;
  const bool one_node =
      std::adjacent_find(nodes.begin(), nodes.end(), std::not_equal_to<>()) == nodes.end();
  const bool alike = one_node && network.topology.levels.empty();
  if (place.size != network.provenance.ranks || !alike) return {};
  for (const auto& one : network.corrections)
    if (one.collective == algorithm.collective && one.algorithm == algorithm.name)
      return factor_at(one.points, bytes);
  return {};
}

std::vector<Correction> corrections_of(std::span<const MeasuredRatio> ratios) {
  std::map<std::pair<Collective, std::string>, std::map<double, std::vector<double>>> found;
  for (const auto& ratio : ratios)
    found[{ratio.collective, ratio.algorithm}][ratio.bytes].push_back(ratio.factor);
  std::vector<Correction> all;
  for (auto& [what, sizes] : found) {
    Correction one{what.first, what.second, {}};
    for (auto& [bytes, factors] : sizes) {
      std::sort(factors.begin(), factors.end());
      one.points.push_back({bytes, factors[factors.size() / 2]});
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<double> left_out_deviations(std::span<const MeasuredRatio> ratios) {
  const auto all = corrections_of(ratios);
  std::vector<double> deviations;
  for (const auto& ratio : ratios)
    for (auto one : all) {
      if (one.collective != ratio.collective || one.algorithm != ratio.algorithm) continue;
      std::erase_if(one.points, [&](const auto& point) { return point.bytes == ratio.bytes; });
      deviations.push_back(ratio.factor / factor_at(one.points, ratio.bytes));
    }
  return deviations;
}

}  // namespace sinew
