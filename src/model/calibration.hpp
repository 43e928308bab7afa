// From timed collectives to a network model. Nothing is measured here: timings come in as values,
// so that the same computation can be tried on timings of a known network.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <sinew/algorithms.hpp>
#include "model/correction.hpp"
#include "model/fit.hpp"

namespace sinew {

/// One collective to time. Its larger buffer has `bytes`; allreduce and broadcast are in place.
struct Experiment {
  Collective collective{};
  std::string algorithm{};
  double bytes = 0;
  friend bool operator==(const Experiment&, const Experiment&) = default;
};

struct Timing {
  Experiment what{};
  double ps = 0;     // the lower quartile of its samples
  double noise = 1;  // p90 over p25
};

struct Measurements {
  int ranks = 2;
  double slot_bytes = 0;  // of the board
  bool board = false;     // the ranks share memory
  std::vector<Timing> timings{};
  std::vector<Sample> reduce{}, copy{};  // of one rank alone
};

/// The experiments that `derive` solves for the parts of a network, by message size: what a rank
/// sends and combines in each is a power of two times `unit` bytes.
std::vector<Experiment> instruments(int ranks, bool board, std::span<const double> message_bytes);

/// The network whose simulation explains the instruments' timings. Throws Error{invalid_argument}
/// when one of them is missing.
Network derive(const Measurements& measured);

/// What a switch from one rank to the next takes, by timings of `ranks` that share `cores`: the
/// value with which the law of crowded hosts (crowding.hpp) explains them best.
double switch_ps(const Network& network, int ranks, int cores, std::span<const Timing> timings);

/// Measured over predicted time of each timing, in their order. Timings of algorithms that the
/// network has no costs for are left out.
std::vector<MeasuredRatio> compare(const Network& network, int ranks,
                                   std::span<const Timing> timings);

/// The error bar that holds 19 of 20 deviations with a little room, so nine of ten of others; and
/// their median error.
ErrorBar error_bar(std::vector<double> deviations);
double median_error(std::span<const double> deviations);

}  // namespace sinew
