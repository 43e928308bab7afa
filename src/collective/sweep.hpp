// The worlds that stand for an algorithm: what `sinew verify` and the tests run it through.
#pragma once

#include <string>
#include <vector>

#include <sinew/algorithms.hpp>
#include <sinew/verify.hpp>

namespace sinew {

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
/// want several: halves, blocks, round robin and an uneven split. Empty where the algorithm does
/// not fit.
std::vector<Setting> settings(const Algorithm& algorithm, int size);

/// Under what an algorithm must hold: both send modes, published data by copy and by reference, and
/// output over input where it promises that.
std::vector<Conditions> conditions(const Algorithm& algorithm);
/// "synchronous sends, in place".
std::string to_string(const Conditions& conditions);

}  // namespace sinew
