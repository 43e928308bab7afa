// The drawing as SVG: a line a rank, bars where it works, arrows where it sends.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "report/explain.hpp"
#include "schedule/svg_canvas.hpp"

namespace sinew::report {
namespace {

using detail::Layer;
using detail::SvgCanvas;

constexpr double kLeft = 70, kTop = 64, kRow = 34, kWidth = 820, kRight = 24, kBar = 12;
constexpr std::size_t kMostRanks = 24, kMostDrawn = 2000;

class Drawing {
 public:
  Drawing(std::vector<int> ranks, Picoseconds end)
      : ranks_(std::move(ranks)), end_(static_cast<double>(std::max(end, {1}))) {}

  [[nodiscard]] bool shows(int rank) const {
    return std::binary_search(ranks_.begin(), ranks_.end(), rank);
  }
  void draw(const Activity& each, bool chain) {
    const auto words = fmt::format("{} at {}, {}", each.op == Op::send ? "message" : "work",
                                   short_time(static_cast<double>(each.begin)),
                                   short_time(static_cast<double>(each.end - each.begin)));
    if (each.op != Op::send) {
      if (!shows(each.rank)) return;
      const double x = at(each.begin), width = std::max(at(each.end) - x, 1.5);
      canvas_.rect(Layer::shapes, x, row(each.rank) - kBar / 2, width, kBar, 2,
                   chain ? "bar join" : "bar board");
      return;
    }
    if (!shows(each.rank) || !shows(each.peer)) return;
    canvas_.path(chain ? Layer::labels : Layer::arrows,
                 detail::move_line(at(each.begin), row(each.rank), at(each.end), row(each.peer)),
                 chain ? "arrow join" : "arrow move", chain ? "join" : "move",
                 fmt::format("rank {} to rank {}: {}, {}", each.rank, each.peer, words,
                             human_bytes(static_cast<std::uint64_t>(each.bytes))));
  }
  [[nodiscard]] std::string finish(const std::string& title) {
    const double bottom = kTop + kRow * static_cast<double>(ranks_.size());
    canvas_.rect(Layer::ground, 0, 0, kLeft + kWidth + kRight, bottom + 30, 0, "page");
    canvas_.text(Layer::labels, kLeft, 24, "title", title);
    canvas_.text(Layer::labels, kLeft, 42, "soft",
                 "Orange: the longest chain. Arrows are messages, bars combining and copying.");
    for (const int rank : ranks_) {
      canvas_.line(Layer::ground, kLeft, row(rank), kLeft + kWidth, row(rank), "life");
      canvas_.text(Layer::labels, kLeft - 10, row(rank) + 4, "rank end", fmt::format("{}", rank));
    }
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0})
      canvas_.text(Layer::labels, kLeft + share * kWidth, bottom + 12, "soft middle",
                   short_time(share * end_));
    return canvas_.document(kLeft + kWidth + kRight, bottom + 30, title,
                            "Ranks down, time across; the longest chain of events is marked.");
  }

 private:
  [[nodiscard]] double at(Picoseconds time) const {
    return kLeft + static_cast<double>(time) / end_ * kWidth;
  }
  [[nodiscard]] double row(int rank) const {
    const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
    return kTop + kRow * static_cast<double>(found - ranks_.begin()) + kRow / 2;
  }
  std::vector<int> ranks_;
  double end_;
  SvgCanvas canvas_;
};

}  // namespace

std::string explain_as_svg(const CriticalPath& path, std::span<const Activity> activities,
                           const std::string& title) {
  Drawing drawing(ranks_shown(path, activities, kMostRanks), path.end);
  std::size_t drawn = 0;
  for (const auto& each : activities) {
    if (each.end == each.begin || ++drawn > kMostDrawn) continue;
    drawing.draw(each, false);
  }
  for (const auto& step : path.steps) drawing.draw(step, true);
  return drawing.finish(title);
}

}  // namespace sinew::report
