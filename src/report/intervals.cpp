#include "report/intervals.hpp"

#include <algorithm>

namespace sinew::report {

Intervals joined(std::vector<Interval> any) {
  std::sort(any.begin(), any.end(),
            [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; });
  Intervals result;
  for (const auto& next : any) {
    if (next.end_ns <= next.begin_ns) continue;
    if (!result.empty() && next.begin_ns <= result.back().end_ns)
      result.back().end_ns = std::max(result.back().end_ns, next.end_ns);
    else
      result.push_back(next);
  }
  return result;
}

Intervals joined(const Intervals& a, const Intervals& b) {
  auto all = a;
  all.insert(all.end(), b.begin(), b.end());
  return joined(std::move(all));
}

Intervals minus(const Intervals& a, const Intervals& b) {
  Intervals result;
  std::size_t j = 0;
  for (auto rest : a) {
    while (j < b.size() && b[j].end_ns <= rest.begin_ns) ++j;
    for (auto at = j; at < b.size() && b[at].begin_ns < rest.end_ns; ++at) {
      if (b[at].begin_ns > rest.begin_ns) result.push_back({rest.begin_ns, b[at].begin_ns});
      rest.begin_ns = std::max(rest.begin_ns, b[at].end_ns);
    }
    if (rest.begin_ns < rest.end_ns) result.push_back(rest);
  }
  return result;
}

Intervals common(const Intervals& a, const Intervals& b) {
  Intervals result;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const auto begin = std::max(a[i].begin_ns, b[j].begin_ns);
    const auto end = std::min(a[i].end_ns, b[j].end_ns);
    if (begin < end) result.push_back({begin, end});
    ++(a[i].end_ns < b[j].end_ns ? i : j);
  }
  return result;
}

double length_ns(const Intervals& intervals) {
  double sum = 0;
  for (const auto& one : intervals) sum += one.length();
  return sum;
}

std::vector<double> covered_ns(const Intervals& intervals, std::span<const Interval> windows) {
  std::vector<double> covered(windows.size(), 0);
  std::size_t i = 0;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    while (i < intervals.size() && intervals[i].end_ns <= windows[w].begin_ns) ++i;
    for (auto at = i; at < intervals.size() && intervals[at].begin_ns < windows[w].end_ns; ++at) {
      const auto begin = std::max(intervals[at].begin_ns, windows[w].begin_ns);
      const auto end = std::min(intervals[at].end_ns, windows[w].end_ns);
      if (begin < end) covered[w] += static_cast<double>(end - begin);
    }
  }
  return covered;
}

}  // namespace sinew::report
