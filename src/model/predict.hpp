// What one collective would take on a network, and why: a simulation beside its lower bound.
#pragma once

#include <string>
#include <vector>

#include "model/simulate.hpp"

namespace sinew {

struct Prediction {
  const Algorithm* algorithm = nullptr;
  int ranks = 1;
  double bytes = 0;
  std::uint32_t segments = 1;
  Picoseconds time = 0;
  double low = 0, high = 0;  // picoseconds: the network's error bar, around nine of ten samples
  // What the longest chain of events consists of; they add up to 1.
  double alpha = 0, beta = 0, gamma = 0, wait = 0;
  double idle = 0;  // mean share of the time in which a rank has nothing to do
  std::uint64_t messages = 0;
  double bytes_per_rank = 0;  // sent by the rank that sends most, or read from shared memory
  double lower_bound = 0;     // picoseconds
  double correction = 1;      // factor that the time has in it: model/correction.hpp
  std::vector<std::string> no_effect{};  // inputs that this answer does not depend on
  std::vector<std::string> warnings{};   // why it may be wrong
  [[nodiscard]] double ratio_to_bound() const {
    return lower_bound > 0 ? static_cast<double>(time) / lower_bound : 1;
  }
};

struct Question {
  Collective collective{};
  int ranks = 1;
  double bytes = 0;  // of the larger user buffer
  int root = 0;
  std::uint32_t segments = 0;  // 0: as many as the library would use
  std::vector<int> node_of{};  // empty: as the network's levels say, or one node
  int samples = 20;            // of networks with noise or stragglers, each with the next seed
};

/// The node map of a question on a network.
std::vector<int> nodes_of(const Question& question, const Network& network);

/// Whether the algorithm could run there at all.
bool fits(const Algorithm& algorithm, const Question& question, const Network& network);
/// With noise, the mean of the samples. Throws Error{invalid_argument} when the network's levels do
/// not hold the ranks.
Prediction predict(const Algorithm& algorithm, const Question& question, const Network& network,
                   const SimulateOptions& options = {});

}  // namespace sinew
