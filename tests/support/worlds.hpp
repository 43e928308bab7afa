// Every world the symbolic and data tests sweep: the registry times places.
#pragma once

#include <string>
#include <vector>

#include <sinew/algorithms.hpp>

namespace sinew::test {

/// One way to run an algorithm.
struct Setting {
  const Algorithm* algorithm;
  int size;
  int root;
  std::uint32_t segments;
  std::vector<int> node_of;
  [[nodiscard]] World world() const;
};
std::string to_string(const Setting& setting);

/// Roots 0, the middle and the last; pipelines of 1, 2 and 5; one node, and for algorithms that
/// want several: blocks, round robin and an uneven split.
std::vector<Setting> settings(const Algorithm& algorithm, int size);

}  // namespace sinew::test
