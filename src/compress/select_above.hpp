// All elements of at least some magnitude, however many there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernel/large_buffer.hpp"
#include "kernel/select.hpp"

namespace sinew {

class SelectAbove {
 public:
  struct Chosen {
    std::span<const std::uint32_t> indices;
    std::span<const float> values;
    /// Whether all elements are: what is not has the largest magnitude, so it is among the chosen.
    bool finite = true;
  };
  /// Zeros are never chosen. Valid until the next call.
  Chosen choose(std::span<const float> values, Magnitude floor) {
    floor = std::max(floor, kSmallest);
    auto found = select(values, floor, room());
    if (found > capacity_) {
      capacity_ = std::min(values.size(), found + found / 4);
      indices_.reserve(capacity_ + kSelectSlack);
      values_.reserve(capacity_ + kSelectSlack);
      found = select(values, floor, room());
    }
    const std::span<const float> chosen(values_.data(), found);
    return {{indices_.data(), found}, chosen, all_finite(chosen)};
  }

 private:
  [[nodiscard]] ItemRoom room() const noexcept {
    return {indices_.data(), values_.data(), capacity_};
  }
  std::size_t capacity_ = 0;
  LargeBuffer<std::uint32_t> indices_{kSelectSlack};
  LargeBuffer<float> values_{kSelectSlack};
};

}  // namespace sinew
