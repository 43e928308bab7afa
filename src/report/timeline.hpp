// The recorded calls of a run as a timeline that Perfetto and chrome://tracing open.
#pragma once

#include <span>
#include <string>

#include "trace/reader.hpp"

namespace sinew::report {

/// Trace-event JSON: a process for each rank, a track for each thread, a slice for each call that
/// was recorded. Times are from the first of all calls, in microseconds.
std::string to_perfetto(std::span<const trace::Trace> traces);

}  // namespace sinew::report
