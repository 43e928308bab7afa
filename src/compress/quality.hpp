// How good a step was: its result beside that of a dense one.
#pragma once

#include <span>

#include <sinew/scheme.hpp>

namespace sinew {

/// Norm in double precision.
double norm(std::span<const float> values);

/// Sets relative_error and cosine.
void compare(std::span<const float> result, std::span<const float> dense, StepReport& report);

}  // namespace sinew
