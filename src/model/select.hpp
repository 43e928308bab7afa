// Which algorithm for which call: what a call would take, predicted from the schedules that would
// run and a network model.
#pragma once

#include <cstdint>
#include <span>

#include <sinew/algorithms.hpp>
#include "model/network.hpp"

namespace sinew {

/// What ranks run on, as the choice of an algorithm sees it. Equal on all ranks, or they would
/// choose apart.
struct Surroundings {
  Network network{};            // inside a node
  int cores = 0;                // that all ranks share; 0: one each
  double crossing_ps = 0;       // a message to another node, on top
  double crossing_byte_ps = 0;  // each byte of all that a node takes in from others
};

/// How deep to pipeline `bytes`; 1 for algorithms that do not.
std::uint32_t segments_for(const Algorithm& algorithm, std::uint64_t bytes,
                           std::uint64_t chunk_bytes);

/// Whether any two nodes have two ranks or more each, which is where levels can pay.
bool has_levels(std::span<const int> node_of);

/// Picoseconds of one call among many on `bytes` (the large buffer of a rank). `place.rank` does
/// not matter.
///
/// With a core for each rank, the schedules are simulated. Otherwise the cores do everybody's work,
/// what the busiest rank has to do cannot be shared out (but done while others work, where messages
/// go in slices), and whoever waits needs a core again when
/// what it waited for has come. In collectives in which nobody who gives gets anything back, calls
/// overlap, as far as what is under way fits in buffers.
double call_ps(const Algorithm& algorithm, const Place& place, double bytes,
               const Surroundings& around);

}  // namespace sinew
