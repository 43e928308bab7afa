// The plain loops that those of select.cpp, and those of other devices, are compared with.
#include "kernel/select.hpp"

namespace sinew {

std::size_t accumulate_select_scalar(std::span<const float> gradient, std::span<const float> kept,
                                     std::span<float> sum, Magnitude floor,
                                     ItemRoom room) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    sum[i] = gradient[i] + kept[i];
    append_if(sum[i], i, floor, room, count);
  }
  return count;
}

std::size_t select_scalar(std::span<const float> values, Magnitude floor, ItemRoom room) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) append_if(values[i], i, floor, room, count);
  return count;
}

std::size_t take_between_scalar(std::span<const float> values, Magnitude low, Magnitude width,
                                float* to) noexcept {
  std::size_t count = 0;
  for (const float value : values)
    if (magnitude(value) - low < width) to[count++] = value;
  return count;
}

}  // namespace sinew
