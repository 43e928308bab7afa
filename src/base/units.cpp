#include "base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include <sinew/error.hpp>

namespace sinew {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kTimes = std::to_array<Unit>(
    {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"\xC2\xB5s", 1e6}, {"ms", 1e9}, {"s", 1e12}});
constexpr std::array kRates = std::to_array<Unit>({{"B/s", 1},
                                                   {"kB/s", 1e3},
                                                   {"MB/s", 1e6},
                                                   {"GB/s", 1e9},
                                                   {"TB/s", 1e12},
                                                   {"kbit/s", 1e3 / 8},
                                                   {"Mbit/s", 1e6 / 8},
                                                   {"Gbit/s", 1e9 / 8},
                                                   {"Tbit/s", 1e12 / 8}});

// The number times its unit, or a number below 0.
double parse(std::string_view text, std::span<const Unit> units) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  for (const auto& unit : units)
    if (status == std::errc{} && unit.name == rest && std::isfinite(value))
      return value * unit.factor;
  return -1;
}

}  // namespace

double parse_time_ps(std::string_view text) {
  const double ps = parse(text, kTimes);
  if (ps < 0)
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' is not a time; write a number and ns, us, ms or s: 5us", text));
  return ps;
}

double parse_rate_byte_ps(std::string_view text) {
  const double rate = parse(text, kRates);
  if (!(rate > 0))
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' is not a rate; write a number above 0 and GB/s, MB/s, Gbit/s or "
                            "Mbit/s (decimal): 25GB/s",
                            text));
  return 1e12 / rate;
}

std::string human_time_ps(double ps) {
  if (ps < 1e3) return fmt::format("{:.6g} ps", ps);
  if (ps < 1e6) return fmt::format("{:.6g} ns", ps / 1e3);
  if (ps < 1e9) return fmt::format("{:.6g} us", ps / 1e6);
  if (ps < 1e12) return fmt::format("{:.6g} ms", ps / 1e9);
  return fmt::format("{:.6g} s", ps / 1e12);
}

namespace {

struct Scale {
  double one;
  std::string_view unit;
};

Scale time_scale(double ps) {
  if (ps == 0) return {1e6, "us"};
  if (ps < 1e3) return {1, "ps"};
  if (ps < 1e6) return {1e3, "ns"};
  if (ps < 1e9) return {1e6, "us"};
  return ps < 1e12 ? Scale{1e9, "ms"} : Scale{1e12, "s"};
}

// Three digits, and never an exponent.
std::string three_digits(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  return value >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

}  // namespace

std::string short_time(double ps) {
  const auto scale = time_scale(ps);
  return fmt::format("{} {}", three_digits(ps / scale.one), scale.unit);
}

std::string short_range(double low_ps, double high_ps) {
  const auto scale = time_scale(high_ps);
  return fmt::format("{}-{} {}", three_digits(low_ps / scale.one),
                     three_digits(high_ps / scale.one), scale.unit);
}

std::string short_number(double value, std::string_view unit) {
  constexpr std::string_view kPrefixes = " kMGTPE";
  std::size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < kPrefixes.size()) value /= 1e3, ++prefix;
  const auto digits = prefix == 0 && value == std::floor(value) ? fmt::format("{:.0f}", value)
                                                                : three_digits(value);
  const auto letter = prefix == 0 ? std::string() : std::string(1, kPrefixes[prefix]);
  const auto tail = letter + std::string(unit);
  return tail.empty() ? digits : fmt::format("{} {}", digits, tail);
}

std::string human_rate(double byte_ps) {
  const double rate = 1e12 / byte_ps;
  if (rate < 1e9) return fmt::format("{:.4g} MB/s", rate / 1e6);
  return fmt::format("{:.4g} GB/s", rate / 1e9);
}

}  // namespace sinew
