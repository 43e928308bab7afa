// Drawings of a world of schedules: rounds down, ranks across, arrows with their chunks.
#pragma once

#include <string>

#include <sinew/schedule.hpp>

namespace sinew {

/// Plain text for a terminal; at most `columns` wide where the world allows it.
std::string draw_text(const World& world, int columns = 80);
/// A self-contained SVG image (no scripts, no external fonts), readable on light and dark pages.
std::string draw_svg(const World& world);

}  // namespace sinew
