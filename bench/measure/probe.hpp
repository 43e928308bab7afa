// Which speed the machine is in: how long a flag takes from one core to another.
#pragma once

#include <optional>

namespace sinew::bench {

/// Half a round trip of a flag between two pinned threads, in microseconds (the median over short
/// bursts); nothing when the process may use one core only. Takes a few milliseconds.
std::optional<double> flag_half_round_trip_us();

}  // namespace sinew::bench
