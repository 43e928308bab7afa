// The middle one of some figures; of an even number the upper one. 0 if there are none.
#pragma once

#include <algorithm>
#include <vector>

namespace sinew {

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace sinew
