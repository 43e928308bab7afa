#include "schedule/draw_arrows.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "schedule/svg_canvas.hpp"

namespace sinew::detail {
namespace {

struct Box {
  double x0, y0, x1, y1;
};

Box box_of(const Arrow& arrow, Point at) {
  const double half = text_width(arrow.label) / 2 + 2;
  return {at.x - half, at.y - 6, at.x + half, at.y + 6};
}

double overlap(const Box& a, const Box& b) {
  const double w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const double h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  return w > 0 && h > 0 ? w * h : 0;
}

double at(const Line& line, double x) {
  return line.a.y + (line.b.y - line.a.y) * (x - line.a.x) / (line.b.x - line.a.x);
}

bool crosses(const Line& line, const Box& box) {
  const double x0 = std::max(box.x0, std::min(line.a.x, line.b.x));
  const double x1 = std::min(box.x1, std::max(line.a.x, line.b.x));
  if (x1 <= x0) return false;
  const auto [low, high] = std::minmax({at(line, x0), at(line, x1)});
  return low < box.y1 && high > box.y0;
}

// The part of a line between left and right, or nothing.
std::optional<Line> clip(const Line& line, double left, double right) {
  const auto [low, high] = std::minmax({line.a.x, line.b.x});
  const double x0 = std::max(left, low), x1 = std::min(right, high);
  if (x1 <= x0) return std::nullopt;
  const Point p{x0, at(line, x0)}, q{x1, at(line, x1)};
  return line.a.x < line.b.x ? Line{p, q} : Line{q, p};
}

// Candidates: a distance along x from the sender, from the receiver, or half-way.
enum class Spot { middle, near_sender, near_receiver, beside_sender, beside_receiver };
constexpr std::array kSpots{Spot::middle, Spot::near_sender, Spot::near_receiver,
                            Spot::beside_sender, Spot::beside_receiver};

Point spot_on(const Arrow& arrow, const Frame& frame, Spot spot) {
  const bool at_sender = spot == Spot::near_sender || spot == Spot::beside_sender;
  const Line& line = at_sender || spot == Spot::middle ? arrow.lines.front() : arrow.lines.back();
  const double width = std::abs(line.b.x - line.a.x);
  const bool beside = spot == Spot::beside_sender || spot == Spot::beside_receiver;
  const double away = frame.step * (beside ? 0.5 : 0.25) / width;
  double t = 0.5;
  if (spot != Spot::middle && away < 0.5) t = at_sender ? away : 1 - away;
  return {line.a.x + (line.b.x - line.a.x) * t, line.a.y + (line.b.y - line.a.y) * t};
}

constexpr double kCrossing = 60, kOnLifeline = 100, kWorthMoving = 50;

// What is wrong with a label at `where`: the area it shares with other labels, the lines it hides.
double cost(const std::vector<Arrow>& arrows, std::size_t which, Point where, const Frame& frame) {
  const Arrow& arrow = arrows[which];
  const Box box = box_of(arrow, where);
  double sum = 0;
  for (std::size_t i = 0; i < arrows.size(); ++i) {
    if (i == which || arrows[i].lines.empty()) continue;
    sum += 10 * overlap(box, box_of(arrows[i], arrows[i].label_at));
    for (const Line& line : arrows[i].lines) sum += crosses(line, box) ? kCrossing : 0;
  }
  for (int r = 0; r < frame.ranks; ++r)
    sum += frame.x(r) > box.x0 && frame.x(r) < box.x1 ? kOnLifeline : 0;
  sum += std::max(0.0, frame.left() - box.x0) + std::max(0.0, box.x1 - frame.right());
  return sum;
}

}  // namespace

Arrow lay_arrow(const Message& message, const Frame& frame, double y0, double y1) {
  Arrow arrow{.message = &message,
              .lines = {},
              .exit = {},
              .entry = {},
              .label = label_of(message),
              .label_at = {}};
  const double lap = message.turn * frame.size * frame.step;
  const auto add = [&](double shift) {
    const Line whole{{frame.x(message.from) + shift - lap, y0}, {frame.x(message.to) + shift, y1}};
    if (const auto seen = clip(whole, frame.left(), frame.right())) arrow.lines.push_back(*seen);
  };
  if (message.from == message.to) return arrow;
  if (message.turn != 0) add(lap);
  add(0);
  if (arrow.lines.empty()) return arrow;
  const bool sender_seen = message.from >= 0 && message.from < frame.ranks;
  arrow.arrives = message.to >= 0 && message.to < frame.ranks;
  if (!sender_seen && !arrow.arrives) arrow.lines.clear();
  if (arrow.lines.empty()) return arrow;
  if (!arrow.arrives || message.turn != 0) arrow.exit = arrow.lines.front().b;
  if (!sender_seen || message.turn != 0) arrow.entry = arrow.lines.back().a;
  if (!sender_seen) arrow.exit.reset();
  if (!arrow.arrives) arrow.entry.reset();
  return arrow;
}

std::string label_of(const Message& message) {
  const Chunks& src = message.send_round == Message::kNoRound ? message.dst : message.src;
  const Chunks& dst = message.recv_round == Message::kNoRound ? message.src : message.dst;
  std::string label = spell(src);
  if (src != dst && src.count + dst.count > 0) label += "→" + spell(dst);
  if (message.channel > 0) label += fmt::format(" ~{}", message.channel);
  return label;
}

void place_labels(std::vector<Arrow>& arrows, const Frame& frame) {
  // One rule for the whole round looks calm; what still collides then moves on its own.
  const auto place_all = [&](Spot spot) {
    for (Arrow& arrow : arrows)
      if (!arrow.lines.empty()) arrow.label_at = spot_on(arrow, frame, spot);
    double sum = 0;
    for (std::size_t i = 0; i < arrows.size(); ++i)
      if (!arrows[i].lines.empty()) sum += cost(arrows, i, arrows[i].label_at, frame);
    return sum;
  };
  Spot best = kSpots.front();
  double least = place_all(best);
  for (const Spot spot : kSpots)
    if (const double sum = place_all(spot); sum < least) least = sum, best = spot;
  place_all(best);
  for (std::size_t i = 0; i < arrows.size(); ++i) {
    if (arrows[i].lines.empty()) continue;
    double now = cost(arrows, i, arrows[i].label_at, frame);
    for (const Spot spot : kSpots) {
      const Point there = spot_on(arrows[i], frame, spot);
      if (const double then = cost(arrows, i, there, frame); then + kWorthMoving < now)
        now = then, arrows[i].label_at = there;
    }
  }
}

}  // namespace sinew::detail
