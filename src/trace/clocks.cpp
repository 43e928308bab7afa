#include "trace/clocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace sinew::trace {
namespace {

constexpr std::size_t kMostPieces = 64;
constexpr std::size_t kMeetingsAPiece = 16;  // so that one of them is short

/// What one meeting says of a host's clock less that of the reference.
struct Bound {
  double at_ns = 0;  // on the host's clock
  double least = 0, most = 0;
};

struct Point {
  double at_ns = 0, offset_ns = 0;
};

struct HostClock {
  std::vector<Point> points;  // in order of time
  double error_ns = 0;

  /// Between two points in a straight line, beyond them as far as the next two say.
  [[nodiscard]] double offset_at(double at_ns) const {
    if (points.size() == 1) return points[0].offset_ns;
    auto after = std::find_if(points.begin() + 1, points.end() - 1,
                              [&](const Point& point) { return point.at_ns >= at_ns; });
    const auto& [t0, o0] = *(after - 1);
    const auto& [t1, o1] = *after;
    return t1 <= t0 ? o0 : o0 + (o1 - o0) * (at_ns - t0) / (t1 - t0);
  }
};

constexpr double kFar = std::numeric_limits<double>::max() / 4;  // where nothing is known

/// A host's part of a meeting.
struct Stay {
  double last_needed = -kFar;  // when the last of those that others need came
  double first_left = kFar;    // when the first of those that need others left
  double begin = 0;
  void add(Needs needs, const Arrival& arrival) {
    begin = static_cast<double>(arrival.call->begin_ns);
    if (arrival.is_needed(needs)) last_needed = std::max(last_needed, begin);
    if (arrival.waits(needs))
      first_left = std::min(first_left, begin + static_cast<double>(arrival.call->duration_ns));
  }
};

/// By host: all bounds there are against the reference.
std::map<std::string, std::vector<Bound>> bounds_of(std::span<const Trace> traces,
                                                    const Meetings& meetings) {
  const auto& reference = traces.front().boot;
  std::map<std::string, std::vector<Bound>> bounds;
  for (const auto& [needs, arrivals] : meetings.complete) {
    std::map<std::string, Stay> stays;
    for (const auto& arrival : arrivals) stays[traces[arrival.trace].boot].add(needs, arrival);
    const auto here = stays.find(reference);
    if (here == stays.end()) continue;
    for (const auto& [host, there] : stays)
      if (host != reference)
        bounds[host].push_back({there.begin, there.last_needed - here->second.first_left,
                                there.first_left - here->second.last_needed});
  }
  return bounds;
}

/// No points: the bounds are all on one side.
HostClock clock_of(std::vector<Bound> bounds) {
  std::sort(bounds.begin(), bounds.end(),
            [](const Bound& a, const Bound& b) { return a.at_ns < b.at_ns; });
  const auto pieces = std::clamp<std::size_t>(bounds.size() / kMeetingsAPiece, 1, kMostPieces);
  HostClock clock;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const auto begin = bounds.size() * piece / pieces, end = bounds.size() * (piece + 1) / pieces;
    double least = -kFar, most = kFar;
    for (std::size_t i = begin; i < end; ++i) {
      least = std::max(least, bounds[i].least);
      most = std::min(most, bounds[i].most);
    }
    if (least < -kFar / 2 || most > kFar / 2) continue;
    // Drift within the piece may let the bounds cross: the width is how much it was.
    clock.error_ns = std::max(clock.error_ns, std::abs(most - least) / 2);
    clock.points.push_back({(bounds[begin].at_ns + bounds[end - 1].at_ns) / 2, (least + most) / 2});
  }
  return clock;
}

}  // namespace

ClockAlignment align_clocks(std::span<Trace> traces, const Meetings& meetings) {
  ClockAlignment alignment;
  std::map<std::string, HostClock> clocks;
  for (auto& [host, bounds] : bounds_of(traces, meetings)) {
    auto clock = clock_of(std::move(bounds));
    if (clock.points.empty()) continue;
    alignment.error_ns = std::max(alignment.error_ns, clock.error_ns + kSameHostErrorNs);
    clocks.emplace(host, std::move(clock));
  }
  for (const auto& trace : traces)
    alignment.comparable &= trace.boot == traces.front().boot || clocks.count(trace.boot) > 0;
  if (!alignment.comparable) return alignment;
  for (auto& trace : traces) {
    const auto clock = clocks.find(trace.boot);
    if (clock == clocks.end()) continue;
    for (auto& call : trace.records) {
      const auto offset = clock->second.offset_at(static_cast<double>(call.begin_ns));
      alignment.offset_ns = std::max(alignment.offset_ns, std::abs(offset));
      call.begin_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(
          0, static_cast<std::int64_t>(call.begin_ns) - static_cast<std::int64_t>(offset)));
    }
  }
  return alignment;
}

}  // namespace sinew::trace
