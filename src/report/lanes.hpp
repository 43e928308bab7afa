// Pictures of a run that stay small whatever its length: lanes of time and a map of who waited
// when.
#pragma once

#include "report/activities.hpp"

namespace sinew::report {

inline constexpr std::size_t kMostMarks = 4000;  // of all lanes: what a browser draws at once

struct Mark {
  double begin_s = 0, end_s = 0;  // from the start of the run
  Part part{};
};

struct Lane {
  int rank = 0;
  std::vector<Mark> marks;
  std::size_t merged = 0;  // stretches that became part of a longer mark; all are in the timeline
};

/// Each rank's parts in order. Where there are too many, a cell of time shows one part, so that
/// each keeps its share of the lane.
std::vector<Lane> lanes_of(std::span<const RankTime> times, std::span<const int> ranks);

/// Shares of the time of each rank, in equal cells of time.
struct Heat {
  double cell_s = 0;
  bool waiting = true;  // else: all communication, because waiting is not known
  std::vector<int> ranks;
  std::vector<std::vector<double>> share;  // [rank][cell]
};
Heat heat_of(std::span<const RankTime> times, std::span<const int> ranks);

}  // namespace sinew::report
