// The last step of `avg`. It runs once a result, so plain loops that the compiler vectorises do.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "kernel/convert.hpp"
#include "kernel/element.hpp"
#include "kernel/reduce.hpp"

namespace sinew {
namespace {

template <class T>
void divide_plain(std::byte* data, std::size_t elements, int divisor) {
  // The divisor may not fit the type (300 ranks of i8), so integers divide in a wider one.
  using Wide = std::conditional_t<std::is_integral_v<T>, std::common_type_t<T, int>, T>;
  for (std::size_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    value = static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(divisor));
    std::memcpy(data + i * sizeof(T), &value, sizeof(T));
  }
}

/// 16-bit floats, a block at a time through f32.
template <class T>
void divide_half(std::byte* data, std::size_t elements, int divisor) {
  constexpr std::size_t kBlock = 512;
  std::array<T, kBlock> narrow;
  std::array<float, kBlock> wide;
  for (std::size_t i = 0; i < elements; i += kBlock) {
    const std::size_t count = std::min(kBlock, elements - i);
    std::byte* block = data + i * sizeof(T);
    std::memcpy(narrow.data(), block, count * sizeof(T));
    convert(std::span<const T>(narrow).first(count), std::span(wide).first(count));
    for (float& value : std::span(wide).first(count)) value /= static_cast<float>(divisor);
    convert(std::span<const float>(wide).first(count), std::span(narrow).first(count));
    std::memcpy(block, narrow.data(), count * sizeof(T));
  }
}

}  // namespace

void divide(DType dtype, std::byte* data, std::size_t elements, int divisor) {
  with_element(dtype, [=]<class T>() {
    if constexpr (std::is_arithmetic_v<T>) {
      divide_plain<T>(data, elements, divisor);
    } else {
      divide_half<T>(data, elements, divisor);
    }
  });
}

}  // namespace sinew
