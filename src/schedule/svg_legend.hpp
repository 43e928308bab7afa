// The legend under an SVG drawing: what occurs in the drawing, and no more.
#pragma once

#include <string>

#include "schedule/draw_layout.hpp"
#include "schedule/svg_canvas.hpp"

namespace sinew::detail {

/// "move": data goes as it is; "join": it is combined; "board": shared memory is written or
/// awaited.
std::string_view colour_of(const Step& step);

struct Legend {
  Uses uses;
  bool moves = false, joins = false, lost = false;  // arrows, by what becomes of the message
  bool turns = false;                               // arrows that go round the edge
  bool crowded = false;                             // rounds whose arrows have no labels
  std::string left_out;
};

/// Draws below `y` on a page of that width; returns where it ends.
double draw_legend(SvgCanvas& canvas, const Legend& legend, double margin, double width, double y);

}  // namespace sinew::detail
