// Sets of moments, as intervals: how long something was going on, and how much of something else
// it covers.
#pragma once

#include <algorithm>
#include <vector>

namespace sinew::imports {

struct Interval {
  double begin = 0, end = 0;
};

/// Ascending and disjoint.
inline std::vector<Interval> united(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> result;
  for (const auto& interval : intervals) {
    if (result.empty() || interval.begin > result.back().end)
      result.push_back(interval);
    else
      result.back().end = std::max(result.back().end, interval.end);
  }
  return result;
}

inline double length_of(const std::vector<Interval>& disjoint) {
  double sum = 0;
  for (const auto& interval : disjoint) sum += interval.end - interval.begin;
  return sum;
}

/// How much of `interval` is covered by `disjoint`, which united() made.
inline double covered(const Interval& interval, const std::vector<Interval>& disjoint) {
  auto at = std::lower_bound(disjoint.begin(), disjoint.end(), interval.begin,
                             [](const Interval& a, double begin) { return a.end < begin; });
  double sum = 0;
  for (; at != disjoint.end() && at->begin < interval.end; ++at)
    sum += std::min(at->end, interval.end) - std::max(at->begin, interval.begin);
  return sum;
}

}  // namespace sinew::imports
