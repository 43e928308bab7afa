// The 16-bit floating-point formats, one value at a time: the reference the array loops must match.
#include <bit>
#include <cstdint>

#include <sinew/types.hpp>

namespace sinew {
namespace {

constexpr std::uint32_t kF32Infinity = 0x7F80'0000;

std::uint16_t high_half(std::uint32_t bits) noexcept {
  return static_cast<std::uint16_t>(bits >> 16);
}

}  // namespace

float to_float(f16 value) noexcept {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1FU;
  const std::uint32_t mantissa = value.bits & 0x3FFU;
  if (exponent == 0) {  // zero and subnormals: a whole number of 2^-24, exact in f32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  if (exponent == 0x1F) {  // processors make a signalling NaN quiet when they widen it; so do we
    const std::uint32_t quiet = mantissa != 0 ? 0x0040'0000U : 0U;
    return std::bit_cast<float>(sign | kF32Infinity | quiet | mantissa << 13);
  }
  return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | mantissa << 13);
}

float to_float(bf16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

f16 to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
  std::uint32_t half = 0;
  if (magnitude > kF32Infinity) {  // NaN: quiet, keeping the payload's top bits as processors do
    half = 0x7E00U | ((magnitude >> 13) & 0x3FFU);
  } else if (magnitude >= 0x4780'0000U) {  // 65536 and more
    half = 0x7C00U;
  } else if (magnitude < 0x3880'0000U) {
    // Below 2^-14 the result counts units of 2^-24, which is the last place of 0.5: the addition
    // itself rounds to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F);
  } else {
    const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
    half = (rounded - ((127U - 15U) << 23)) >> 13;
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

bf16 to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFF'FFFFU) > kF32Infinity) {
    return {high_half(bits | 0x0040'0000U)};  // rounding up could turn a NaN into zero
  }
  return {high_half(bits + 0x7FFFU + ((bits >> 16) & 1U))};
}

}  // namespace sinew
