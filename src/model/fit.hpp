// From timings to a curve: straight pieces, found robustly.
#pragma once

#include <span>

#include "model/network.hpp"

namespace sinew {

struct Sample {
  double bytes = 0;
  double ps = 0;
};

struct FitOptions {
  std::size_t most_segments = 5;
  std::size_t least_points = 4;  // of a segment
  double penalty = 0.25;         // of a segment, in units of relative error
};

/// Segments that minimise the sum of |relative error|, plus a penalty for each. In a segment the
/// line goes through two of its points (a few outliers do not move it), with alpha and beta not
/// below 0. `samples` ascend in bytes; all times are above 0.
Curve fit_curve(std::span<const Sample> samples, const FitOptions& options = {});

/// Median relative error of each inner sample under a fit that did not see it. 0: too few.
double left_out_error(std::span<const Sample> samples, const FitOptions& options = {});

}  // namespace sinew
