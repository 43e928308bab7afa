// Numbers for people, short whatever their size.
#pragma once

#include <fmt/format.h>

#include <string>

namespace sinew {

/// Three figures and never an exponent: 0.55, 5.31, 12.4, 558, 74412.
inline std::string three_figures(double value) {
  const int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f}", value, digits);
}

}  // namespace sinew
