// Times and rates as people write them. Rates are decimal: 1 GB/s is 10^9 bytes a second.
#pragma once

#include <string>
#include <string_view>

namespace sinew {

/// "5us", "1.5ms", "30 ns", "2s" in picoseconds. Throws Error{invalid_argument}.
double parse_time_ps(std::string_view text);
/// "25GB/s", "100Mbit/s" in picoseconds a byte. Throws Error{invalid_argument}.
double parse_rate_byte_ps(std::string_view text);

/// "5 us", "1.25 ms": as many digits as it takes, for inputs that are shown again.
std::string human_time_ps(double ps);
/// "25 GB/s", "12.5 MB/s".
std::string human_rate(double byte_ps);

}  // namespace sinew
