// Waiting told from transfer: when the ranks of a collective came to it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trace/reader.hpp"

namespace sinew::trace {

/// Ranks of one host read one clock; what is left is reading it and the rate of the counter.
inline constexpr double kClockErrorNs = 1000;

struct Waited {
  std::size_t trace = 0;    // index of the trace
  std::size_t counter = 0;  // of its counter
  double waited_ns = 0;     // until the ranks it needed had come
  double duration_ns = 0;
};

struct Arrivals {
  std::vector<Waited> waited;
  std::uint64_t incomplete = 0;  // collectives of which not all ranks are in the records
  bool several_hosts = false;    // whose clocks cannot be compared
};

/// What each rank of a blocking collective waited for: in those where all need all, the last to
/// come; in a broadcast the root; the root of a reduction the last.
Arrivals compare_arrivals(std::span<const Trace> traces);

/// The name of a routine of a trace: "MPI_Send", or what the executor did.
std::string routine_name(const Trace& trace, const Key& key);

}  // namespace sinew::trace
