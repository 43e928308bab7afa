// What whole collectives took, beside what their parts add up to. How much of an algorithm's data
// is still in somebody's cache, or which of its steps happen to overlap, is nothing that parts
// know: so calibration times every algorithm as well, and predictions for as many ranks are
// corrected by it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <sinew/algorithms.hpp>
#include "model/network.hpp"

namespace sinew {

/// The factor on the time of a prediction, which then has Network::corrected_error; nothing where
/// the algorithm was not measured with so many ranks, or where they are on several nodes. Between
/// the sizes that were measured it follows the logarithm of the size; beyond them it stays as it
/// is.
std::optional<double> correction(const Network& network, const Algorithm& algorithm,
                                 const Place& place, double bytes);

/// A collective that was measured, and over predicted by its parts.
struct MeasuredRatio {
  Collective collective{};
  std::string algorithm{};
  double bytes = 0;
  double factor = 1;
};
/// Of several measurements of a size the middle one counts.
std::vector<Correction> corrections_of(std::span<const MeasuredRatio> ratios);

/// Measured over corrected prediction of each of `ratios`, where those of its own size are not used
/// to correct it: how far predictions are off at sizes that nobody has measured.
std::vector<double> left_out_deviations(std::span<const MeasuredRatio> ratios);

}  // namespace sinew
