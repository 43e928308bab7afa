// Timings for a network model: collectives among real ranks, and kernels of this process alone.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/bench_contender.hpp"
#include "measure/tournament.hpp"
#include "model/calibration.hpp"

namespace sinew {

/// Cores that others keep busy, over a moment in which this process does nothing.
double busy_cores();
double load_average();

/// A group of ranks that times collectives in turn.
class Stopwatch {
 public:
  /// Throws Error{system} with the story when the ranks do not start.
  Stopwatch(const BenchSetup& setup, int ranks);

  /// All experiments once a round, so that a slow moment of the machine meets each of them and
  /// spoils none. `progress` is told how many of how many are done.
  std::vector<Timing> time(const std::vector<Experiment>& experiments, int rounds,
                           const std::function<void(std::size_t, std::size_t)>& progress);

 private:
  std::vector<double> samples_us(const Experiment& what);
  bench::Tournament tournament_;
  bool crowded_;
};

/// Combining and copying on one core, by size.
std::vector<Sample> time_reduce(std::span<const double> sizes);
std::vector<Sample> time_copy(std::span<const double> sizes);

}  // namespace sinew
