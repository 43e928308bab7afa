// The form of schedules: what must hold before their meaning can be asked about.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sinew/schedule.hpp>

namespace sinew {

/// Ranks a board step spans, ascending.
std::vector<int> members(const Schedule& schedule, const Step& step);

/// Whether the step reads or writes the shared board.
bool is_board_op(Op op) noexcept;

/// What is malformed in `world`, in words, or nothing: sizes and ranks agree, every chunk range
/// lies inside its buffer, peers exist, steps are ordered, operands fit their op.
std::optional<std::string> malformed(const World& world);

}  // namespace sinew
