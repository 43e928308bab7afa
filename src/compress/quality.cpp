#include "compress/quality.hpp"

#include <cmath>

namespace sinew {

double norm(std::span<const float> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

void compare(std::span<const float> result, std::span<const float> dense, StepReport& report) {
  double apart = 0, product = 0, ours = 0, theirs = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double a = result[i], b = dense[i];
    apart += (a - b) * (a - b);
    product += a * b;
    ours += a * a;
    theirs += b * b;
  }
  // Nothing to send and nothing sent is no error.
  report.relative_error = apart == 0 ? 0 : theirs == 0 ? 1 : std::sqrt(apart / theirs);
  report.cosine = apart == 0                 ? 1
                  : ours == 0 || theirs == 0 ? 0
                                             : product / std::sqrt(ours) / std::sqrt(theirs);
}

}  // namespace sinew
