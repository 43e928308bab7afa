#include "report/lanes.hpp"

#include <algorithm>
#include <array>

namespace sinew::report {
namespace {

constexpr std::size_t kHeatCells = 48;

Interval whole_of(std::span<const RankTime> times) {
  Interval whole{~std::uint64_t{0}, 0};
  for (const auto& rank : times) {
    whole.begin_ns = std::min(whole.begin_ns, rank.whole.begin_ns);
    whole.end_ns = std::max(whole.end_ns, rank.whole.end_ns);
  }
  return whole;
}

std::vector<Interval> cells_of(const Interval& whole, std::size_t count) {
  std::vector<Interval> cells;
  const auto length = whole.end_ns - whole.begin_ns;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](std::size_t n) {
      return whole.begin_ns +
             static_cast<std::uint64_t>(static_cast<double>(length) * static_cast<double>(n) /
                                        static_cast<double>(count));
    };
    if (at(i) < at(i + 1)) cells.push_back({at(i), at(i + 1)});
  }
  return cells;
}

struct Piece {
  Interval interval;
  Part part;
};

std::vector<Piece> pieces_of(const RankTime& rank) {
  std::vector<Piece> pieces;
  for (std::size_t p = 0; p < rank.parts.size(); ++p)
    for (const auto& interval : rank.parts[p]) pieces.push_back({interval, static_cast<Part>(p)});
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return a.interval.begin_ns < b.interval.begin_ns;
  });
  return pieces;
}

/// One piece a cell at most: the part of which most is still to be shown. So short parts that come
/// again and again keep their share of the picture.
std::vector<Piece> merged(const RankTime& rank, const Interval& whole, std::size_t most) {
  const auto cells = cells_of(whole, most);
  constexpr auto kShown = static_cast<std::size_t>(Part::hidden);  // what hides it is shown
  std::array<std::vector<double>, kShown> covered;
  for (std::size_t p = 0; p < kShown; ++p) covered[p] = covered_ns(rank.parts[p], cells);
  std::array<double, kShown> owed{};
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::size_t most_owed = 0;
    for (std::size_t p = 0; p < kShown; ++p) {
      owed[p] += covered[p][i];
      if (owed[p] > owed[most_owed]) most_owed = p;
    }
    if (owed[most_owed] < 0.5 * cells[i].length()) continue;
    owed[most_owed] -= cells[i].length();
    const auto what = static_cast<Part>(most_owed);
    if (!pieces.empty() && pieces.back().part == what &&
        pieces.back().interval.end_ns == cells[i].begin_ns)
      pieces.back().interval.end_ns = cells[i].end_ns;
    else
      pieces.push_back({cells[i], what});
  }
  return pieces;
}

}  // namespace

std::vector<Lane> lanes_of(std::span<const RankTime> times, std::span<const int> ranks) {
  std::vector<Lane> lanes;
  if (times.empty()) return lanes;
  const auto whole = whole_of(times);
  const auto most = std::max<std::size_t>(kMostMarks / times.size(), 1);
  for (std::size_t i = 0; i < times.size(); ++i) {
    auto pieces = pieces_of(times[i]);
    Lane lane{ranks[i], {}, 0};
    if (pieces.size() > most) {
      const auto all = pieces.size();
      pieces = merged(times[i], whole, most);
      lane.merged = all - pieces.size();
    }
    for (const auto& [interval, part] : pieces)
      lane.marks.push_back({static_cast<double>(interval.begin_ns - whole.begin_ns) * 1e-9,
                            static_cast<double>(interval.end_ns - whole.begin_ns) * 1e-9, part});
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

Heat heat_of(std::span<const RankTime> times, std::span<const int> ranks) {
  Heat heat;
  if (times.empty()) return heat;
  const auto cells = cells_of(whole_of(times), kHeatCells);
  if (cells.empty()) return heat;
  heat.cell_s = cells.front().length() * 1e-9;
  heat.waiting = std::any_of(times.begin(), times.end(), [](const auto& t) { return t.compared; });
  for (std::size_t i = 0; i < times.size(); ++i) {
    heat.ranks.push_back(ranks[i]);
    auto& row = heat.share.emplace_back();
    for (const auto& split : splits_of(times[i], cells))
      row.push_back((heat.waiting ? split.waiting_s : split.exposed_s()) / split.elapsed_s);
  }
  return heat;
}

}  // namespace sinew::report
