// The steps of one collective out of the traces of its ranks, as activities whose longest chain can
// be found.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/simulate.hpp"
#include "trace/reader.hpp"

namespace sinew::report {

struct RecordedCollective {
  std::uint32_t communicator = 0;
  std::uint32_t sequence = 0;
  std::string collective{}, algorithm{};
  std::uint64_t bytes = 0;
  int ranks = 0;  // whose traces have it
  std::uint64_t begin_ns = 0, end_ns = 0;
};

/// Those whose steps were recorded, in order of time. Throws Error{invalid_argument} when the
/// traces are of hosts whose clocks cannot be compared.
std::vector<RecordedCollective> recorded_collectives(std::span<const trace::Trace> traces);

/// Times from the first rank's begin on. Messages are paired in the order of their route; who reads
/// shared memory waited for whom published last before.
std::vector<Activity> recorded_steps(std::span<const trace::Trace> traces,
                                     const RecordedCollective& which);

}  // namespace sinew::report
