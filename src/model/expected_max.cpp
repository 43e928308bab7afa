#include "model/expected_max.hpp"

#include <cmath>

namespace sinew {

// E[max] = integral over x of (1 - F(x)^n) above 0 and -F(x)^n below, for the normal F.
double expected_normal_max(double count) {
  if (count <= 1) return 0;
  constexpr double kEnd = 12, kStep = 1.0 / 512;
  double sum = 0;
  for (double x = kStep / 2; x < kEnd; x += kStep) {
    const double above = std::erfc(x / std::sqrt(2.0)) / 2;  // 1 - F(x) = F(-x)
    sum += -std::expm1(count * std::log1p(-above)) * kStep;  // 1 - F(x)^n
    sum -= std::exp(count * std::log(above)) * kStep;        // F(-x)^n
  }
  return sum;
}

}  // namespace sinew
