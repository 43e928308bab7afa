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
/// "7.75 ms", "77.5 ms", "0.123 us": three digits, for tables.
std::string short_time(double ps);
/// "6.6-9.9 ms", both ends in the unit of the larger.
std::string short_range(double low_ps, double high_ps);
/// "193 MB" with the unit "B", decimal; "3.6 k" without one.
std::string short_number(double value, std::string_view unit);
/// "25 GB/s", "12.5 MB/s".
std::string human_rate(double byte_ps);

}  // namespace sinew
