// Where the arrows of an SVG drawing run, and where their labels stand so that they can be read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/draw_layout.hpp"

namespace sinew::detail {

struct Point {
  double x = 0, y = 0;
};
struct Line {
  Point a, b;
};

/// The columns of the drawing: rank r at `first + r * step`; what is seen is left..right.
struct Frame {
  double first = 0, step = 1;
  int ranks = 0;  // drawn
  int size = 0;   // of the world
  [[nodiscard]] double x(int rank) const { return first + rank * step; }
  [[nodiscard]] double left() const { return x(0) - step / 2; }
  [[nodiscard]] double right() const { return x(ranks - 1) + step / 2; }
};

/// One message: one line, or two if it leaves at one side and comes in at the other.
struct Arrow {
  const Message* message = nullptr;
  std::vector<Line> lines;
  bool arrives = true;         // ends at a lifeline that is drawn
  std::optional<Point> exit;   // where it leaves the frame, for "to 9"
  std::optional<Point> entry;  // where it comes in, for "from 9"
  std::string label;
  Point label_at;
};

/// From height `y0` at the sender to `y1` at the receiver. No lines: it is not in the frame at all.
Arrow lay_arrow(const Message& message, const Frame& frame, double y0, double y1);

/// "o2", or "o2→s0" when it lands elsewhere.
std::string label_of(const Message& message);
/// Chooses `label_at` for arrows that share a round, keeping labels off each other and off arrows.
void place_labels(std::vector<Arrow>& arrows, const Frame& frame);

}  // namespace sinew::detail
