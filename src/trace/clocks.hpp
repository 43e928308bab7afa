// One clock for the traces of several hosts, from the traces themselves.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trace/meetings.hpp"

namespace sinew::trace {

/// Ranks of one host read one clock; what is left is reading it and the rate of the counter.
inline constexpr double kSameHostErrorNs = 1000;

struct ClockAlignment {
  double error_ns = kSameHostErrorNs;  // two moments of different ranks are off by this at most
  double offset_ns = 0;                // the greatest there was between two hosts
  bool comparable = true;              // false: hosts whose ranks never met
};

/// Moves the records of every trace to the clock of the first one's host. In a collective nobody
/// leaves before those he needs have come: where all need all, that bounds the difference of two
/// clocks from both sides, and the shortest of many bound it closely. Bounds are taken piece by
/// piece, so that clocks may drift.
ClockAlignment align_clocks(std::span<Trace> traces, const Meetings& meetings);

}  // namespace sinew::trace
