// Stretches of time of one rank: joined, cut and measured.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sinew::report {

struct Interval {
  std::uint64_t begin_ns = 0, end_ns = 0;
  [[nodiscard]] double length() const { return static_cast<double>(end_ns - begin_ns); }
};

/// In order, none touching the next.
using Intervals = std::vector<Interval>;

Intervals joined(std::vector<Interval> any);
Intervals joined(const Intervals& a, const Intervals& b);
/// What is in `a` and not in `b`.
Intervals minus(const Intervals& a, const Intervals& b);
/// What is in both.
Intervals common(const Intervals& a, const Intervals& b);
double length_ns(const Intervals& intervals);

/// Of each window (in order, not overlapping) how much is covered.
std::vector<double> covered_ns(const Intervals& intervals, std::span<const Interval> windows);

}  // namespace sinew::report
