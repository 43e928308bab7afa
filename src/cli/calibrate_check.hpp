// Predictions beside measurements: whole collectives at sizes that no fit has seen.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/bench_contender.hpp"
#include "model/calibration.hpp"

namespace sinew {

/// Times that whole collectives are timed, by other ranks each: how pages and connections happened
/// to fall is of the ranks, and a prediction is for ranks that are yet to start.
constexpr std::size_t kWholeSets = 3;

/// Every algorithm of four collectives at about these sizes, those up to `most`.
std::vector<Experiment> whole_collectives(int ranks, double most, std::span<const double> sizes);

/// Measured over predicted, an algorithm a row, a size a column; of many sizes some.
void print_ratios(const Network& network, std::span<const Timing> timings);

/// Times whole collectives in ranks of their own and says how far the model in `file` is off and
/// how many of them its error bar holds. Throws Error{invalid_argument} for a model of another
/// transport or another number of ranks.
int check_model(const std::string& file, const BenchSetup& setup, int ranks, int rounds,
                double most, bool json);

}  // namespace sinew
