// Runs a compression scheme on several ranks and hands back what every rank had and got, so that
// tests can judge it in one place.
#pragma once

#include <functional>
#include <vector>

#include "support/gradients.hpp"

namespace sinew::test {

struct SchemeRun {
  std::string_view scheme;
  std::vector<TensorSpec> layout;
  CompressionOptions options{};
  int size = 1;
  int steps = 1;
  /// Of a rank, in a step; by default gradient() above.
  std::function<std::vector<float>(int rank, int step)> gradient{};
  bool tcp = false;
};

/// [step][rank]. Throws what the first rank throws.
std::vector<std::vector<Stepped>> run_scheme(const SchemeRun& run);

/// Multiples of 1/64 of moderate size: sums of a few thousand have no rounding, in any order.
std::vector<float> exact_gradient(std::size_t elements, int rank, int step);

/// Whether every rank got the same bits in every step.
bool ranks_agree(const std::vector<std::vector<Stepped>>& steps);

/// The largest |sum of kept + what the result stands for - sum of came_in| of one step, as a share
/// of the largest sum of |came_in|: what rounding may have lost.
double lost_share(const std::vector<Stepped>& ranks, ReduceOp op = ReduceOp::avg);

}  // namespace sinew::test
