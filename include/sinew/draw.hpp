// Drawings of a world of schedules: rounds down, ranks across, arrows with their chunks.
#pragma once

#include <string>
#include <string_view>

#include <sinew/schedule.hpp>

namespace sinew {

/// Plain text for a terminal; at most `columns` wide where the world allows it.
std::string draw_text(const World& world, int columns = 80);
/// A self-contained SVG image (no scripts, no external fonts), readable on light and dark pages.
std::string draw_svg(const World& world);
/// A self-contained page: step through the rounds, see who has contributed to each chunk, change a
/// step and read the verifier's counterexample. `command` is how to make it again. Throws
/// Error{invalid_argument} for a world that does not verify, or is too large to look at.
std::string draw_html(const World& world, std::string_view command);

}  // namespace sinew
