// Loops in the order of a rank's calls: what repeats, how often, and how long a round takes.
#pragma once

#include <string>
#include <vector>

#include "trace/reader.hpp"

namespace sinew::trace {

/// One kind of call in a round.
struct RoundCall {
  std::string routine;
  std::uint64_t bytes = 0;  // where sizes vary: of the first
  std::size_t calls = 0;
  double mean_ns = 0, shortest_ns = 0, longest_ns = 0;  // of one call
};

/// Rounds that are alike, one after the other. Another phase begins where the pattern changes.
struct Phase {
  std::uint64_t rounds = 0;
  std::size_t calls = 0;    // of a round, that move data or synchronise
  bool sizes_vary = false;  // routines and communicators repeat, bytes do not
  double begin_ns = 0;      // since the trace was opened
  double mean_ns = 0, median_ns = 0, p95_ns = 0, longest_ns = 0;  // of a round
  double in_calls_ns = 0;                                         // of the mean, in these calls
  std::vector<double> rounds_ns;  // how long each one took, in order
  std::vector<RoundCall> pattern;
  std::vector<std::uint64_t>
      starts_ns;  // of each round and the end of the last, on the host's clock
};

/// The phases of the thread that communicates most, in order; empty where nothing repeats three
/// times. Looks at records as long as all were kept.
std::vector<Phase> find_phases(const Trace& trace);

}  // namespace sinew::trace
