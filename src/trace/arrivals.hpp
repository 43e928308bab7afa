// Waiting told from transfer: when the ranks of a collective came to it.
#pragma once

#include <string>
#include <vector>

#include "trace/meetings.hpp"

namespace sinew::trace {

struct Waited {
  std::size_t trace = 0;    // index of the trace
  std::size_t counter = 0;  // of its counter
  double waited_ns = 0;     // until the ranks it needed had come
  double duration_ns = 0;
};

/// What each rank of a blocking collective waited for: in those where all need all, the last to
/// come; in a broadcast the root; the root of a reduction the last.
std::vector<Waited> compare_arrivals(const Meetings& meetings);

/// The name of a routine of a trace: "MPI_Send", or what the executor did.
std::string routine_name(const Trace& trace, const Key& key);

}  // namespace sinew::trace
