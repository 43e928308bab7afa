// int8: blocks of 8-bit integers, each with the scale that its largest element asks for. The
// rounding stays with whoever rounded.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compress/block_allreduce.hpp"
#include "compress/schemes.hpp"
#include "kernel/select.hpp"

namespace sinew {
namespace {

// f32 scale | i8 values: an element is scale * value.
class Int8Codec final : public BlockCodec {
 public:
  [[nodiscard]] std::size_t bytes(std::size_t elements) const noexcept override {
    return sizeof(float) + elements;
  }
  void encode(std::span<const float> block, std::uint64_t /*key*/, std::uint64_t /*first*/,
              std::byte* to) const noexcept override {
    Magnitude largest = 0;
    for (const float value : block) largest = std::max(largest, magnitude(value));
    const float scale = scale_for(std::bit_cast<float>(largest));
    std::memcpy(to, &scale, sizeof scale);
    auto* const values = reinterpret_cast<std::int8_t*>(to + sizeof scale);
    if (!std::isfinite(scale)) {
      std::memset(values, 0, block.size());
      return;
    }
    // Adding 1.5 * 2^23 rounds to the nearest whole number, ties to even, and leaves it in the low
    // bits: what vectors can do on any machine.
    constexpr float kRounder = 0x1.8p23F;
    for (std::size_t i = 0; i < block.size(); ++i) {
      const auto bits = std::bit_cast<std::int32_t>(block[i] / scale + kRounder);
      values[i] = static_cast<std::int8_t>(
          std::clamp(bits - std::bit_cast<std::int32_t>(kRounder), -127, 127));
    }
  }
  void decode(const std::byte* from, std::span<float> block) const noexcept override {
    float scale = 0;
    std::memcpy(&scale, from, sizeof scale);
    const auto* const values = reinterpret_cast<const std::int8_t*>(from + sizeof scale);
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = scale * static_cast<float>(values[i]);
  }
  [[nodiscard]] bool finite(const std::byte* from) const noexcept override {
    float scale = 0;
    std::memcpy(&scale, from, sizeof scale);
    return std::isfinite(scale);
  }

 private:
  // Never zero, so that zeros divide like the rest. The decoded sum of something infinite is a NaN
  // (infinity times zero), and so is its own scale.
  static float scale_for(float largest) noexcept {
    return std::max(largest / 127, std::numeric_limits<float>::denorm_min());
  }
};

class Int8 final : public Scheme {
 public:
  explicit Int8(const SchemeSetup& setup)
      : blocks_(fixed_blocks(setup.elements, setup.parameters->whole("block"), setup.size), codec_,
                setup.rank) {}

  Outcome exchange(Exchange& x) override {
    const auto sum = x.feedback.accumulate(x.gradient);
    if (!blocks_.run(x, sum, sum, 0)) return Outcome::non_finite;
    x.feedback.commit();
    return Outcome::done;
  }

 private:
  Int8Codec codec_;
  BlockAllreduce blocks_;
};

}  // namespace

std::unique_ptr<Scheme> make_int8(const SchemeSetup& setup) {
  return std::make_unique<Int8>(setup);
}

}  // namespace sinew
