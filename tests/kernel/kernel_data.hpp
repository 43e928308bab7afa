// What the kernel tests share: awkward values of each type, guarded buffers, comparison by bits.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <sinew/types.hpp>
#include "kernel/element.hpp"
#include "kernel/simd_targets.hpp"

namespace sinew::test {

inline constexpr std::array kSimdLevels{SimdLevel::best, SimdLevel::avx2, SimdLevel::none};

/// Memory with a pattern on both sides, `offset` bytes past a 64-byte boundary.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes, std::size_t offset = 0)
      : bytes_(bytes), memory_(bytes + 4 * kGuard, kPattern) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = kGuard + (64 - address % 64) % 64 + offset;
  }
  [[nodiscard]] std::byte* data() { return memory_.data() + begin_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  void fill(const std::byte* from) {
    if (bytes_ != 0) std::memcpy(data(), from, bytes_);
  }
  [[nodiscard]] bool intact() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if (i >= begin_ && i < begin_ + bytes_) continue;
      if (memory_[i] != kPattern) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kPattern{0xA5};
  std::size_t bytes_;
  std::size_t begin_ = 0;
  std::vector<std::byte> memory_;
};

template <class T>
std::vector<T> awkward_values() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, f16>) {
    return {{0x0000}, {0x8000}, {0x7C00}, {0xFC00}, {0x7E00}, {0x7D01}, {0xFE55},
            {0x0001}, {0x83FF}, {0x7BFF}, {0xFBFF}, {0x3C00}, {0x3C01}, {0x1001}};
  } else if constexpr (std::is_same_v<T, bf16>) {
    return {{0x0000}, {0x8000}, {0x7F80}, {0xFF80}, {0x7FC0}, {0x7F81}, {0xFFFF},
            {0x0001}, {0x807F}, {0x7F7F}, {0xFF7F}, {0x3F80}, {0x3F81}, {0x3B81}};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {T{0},
            -T{0},
            Limits::infinity(),
            -Limits::infinity(),
            Limits::min(),
            Limits::max(),
            Limits::quiet_NaN(),
            -Limits::quiet_NaN(),
            T{1},
            Limits::lowest(),
            Limits::denorm_min(),
            -Limits::denorm_min(),
            T{-1},
            Limits::epsilon(),
            Limits::signaling_NaN()};
  } else {
    return {T{0},
            T{1},
            Limits::min(),
            Limits::max(),
            static_cast<T>(-1),
            T{2},
            static_cast<T>(Limits::max() / 2 + 1)};
  }
}

template <class T>
T ordinary_value(std::mt19937_64& random) {
  const double value = std::ldexp(static_cast<double>(random() % 4096) - 2048.0,
                                  static_cast<int>(random() % 12) - 10);
  if constexpr (std::is_same_v<T, f16>)
    return to_f16(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(static_cast<float>(value));
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(value * 1.0001);
  else
    return static_cast<T>(random());
}

/// Elements of `dtype`, one in sixteen awkward; always the same.
inline std::vector<std::byte> mixed_elements(DType dtype, std::size_t elements) {
  return with_element(dtype, [elements]<class T>() {
    std::mt19937_64 random(20240229);
    const std::vector<T> awkward = awkward_values<T>();
    std::vector<std::byte> bytes(elements * sizeof(T));
    for (std::size_t i = 0; i < elements; ++i) {
      const T value =
          random() % 16 == 0 ? awkward[random() % awkward.size()] : ordinary_value<T>(random);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return bytes;
  });
}

template <class T>
T element_at(const std::byte* data, std::size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value);
  else
    return std::isnan(to_float(value));
}

/// Index of the first element whose bits differ, or -1. Which NaN a sum or product of NaNs is
/// depends on the order in which the compiler put the operands; min and max promise one.
inline std::ptrdiff_t first_difference(DType dtype, const std::byte* a, const std::byte* b,
                                       std::size_t elements, bool any_nan) {
  return with_element(dtype, [=]<class T>() {
    for (std::size_t i = 0; i < elements; ++i) {
      if (std::memcmp(a + i * sizeof(T), b + i * sizeof(T), sizeof(T)) == 0) continue;
      if (any_nan && is_nan(element_at<T>(a, i)) && is_nan(element_at<T>(b, i))) continue;
      return static_cast<std::ptrdiff_t>(i);
    }
    return std::ptrdiff_t{-1};
  });
}

inline bool is_arithmetic(ReduceOp op) {
  return op == ReduceOp::sum || op == ReduceOp::prod || op == ReduceOp::avg;
}

}  // namespace sinew::test
