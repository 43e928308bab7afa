// Collectives whose parts differ in size, as what a simulation runs on: schedules in which a chunk
// is a share of the data so small that parts are whole numbers of them.
#pragma once

#include <span>

#include "model/simulate.hpp"

namespace sinew {

/// Parts in which one, rank 0's, is `imbalance` times the mean of all and the others are alike.
std::vector<double> skewed_parts(int ranks, double bytes, double imbalance);

/// Every rank has `parts[r]` bytes for rank r, and sends them to one rank after another.
Workload ragged_alltoall(std::span<const double> parts);
/// Rank r has `parts[r]` bytes for everybody. Blocks double from round to round (Bruck).
Workload ragged_allgather(std::span<const double> parts);

}  // namespace sinew
