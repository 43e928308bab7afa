// QSGD: an element becomes one of a few levels of its bucket's norm, the upper or the lower
// neighbour by chance, so that it is right on average. Nothing is kept.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/counter_random.hpp"
#include "compress/block_allreduce.hpp"
#include "compress/schemes.hpp"

namespace sinew {
namespace {

// f32 norm | per element `bits_` bits, the lowest first: level + levels, a level being a multiple
// of norm / levels. Written by whole words, so the last one may be half empty in memory but not on
// the wire.
class QsgdCodec final : public BlockCodec {
 public:
  explicit QsgdCodec(std::uint32_t levels)
      : levels_(levels), bits_(static_cast<std::size_t>(std::bit_width(2 * levels))) {}

  [[nodiscard]] std::size_t bytes(std::size_t elements) const noexcept override {
    return sizeof(float) + (elements * bits_ + 7) / 8;
  }
  void encode(std::span<const float> block, std::uint64_t key, std::uint64_t first,
              std::byte* to) const noexcept override {
    const float norm = norm_of(block);
    std::memcpy(to, &norm, sizeof norm);
    auto* at = to + sizeof norm;
    const bool counts = norm > 0 && std::isfinite(norm);
    std::uint64_t word = 0;
    std::size_t filled = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
      const auto level = counts ? level_of(block[i] / norm, random_unit(key, first + i)) : levels_;
      word |= std::uint64_t{level} << filled;
      for (filled += bits_; filled >= 8; filled -= 8, word >>= 8)
        *at++ = static_cast<std::byte>(word);
    }
    if (filled > 0) *at = static_cast<std::byte>(word);
  }
  void decode(const std::byte* from, std::span<float> block) const noexcept override {
    float norm = 0;
    std::memcpy(&norm, from, sizeof norm);
    const auto* at = from + sizeof norm;
    const float step = norm / static_cast<float>(levels_);
    const std::uint64_t mask = (std::uint64_t{1} << bits_) - 1;
    std::uint64_t word = 0;
    std::size_t filled = 0;
    for (float& value : block) {
      for (; filled < bits_; filled += 8) word |= std::to_integer<std::uint64_t>(*at++) << filled;
      const auto level =
          static_cast<std::int32_t>(word & mask) - static_cast<std::int32_t>(levels_);
      value = step * static_cast<float>(level);
      word >>= bits_;
      filled -= bits_;
    }
  }
  [[nodiscard]] bool finite(const std::byte* from) const noexcept override {
    float norm = 0;
    std::memcpy(&norm, from, sizeof norm);
    return std::isfinite(norm);
  }

 private:
  static float norm_of(std::span<const float> block) noexcept {
    double squares = 0;
    for (const double value : block) squares += value * value;
    const double norm = std::sqrt(squares);
    // Finite elements may have a norm beyond f32; a smaller one that is no element's is as good.
    constexpr double kMost = std::numeric_limits<float>::max();
    return static_cast<float>(std::isfinite(norm) ? std::min(norm, kMost) : norm);
  }
  // 0 is the lowest, 2 * levels the highest. `share` of the norm is at most 1, but for rounding.
  [[nodiscard]] std::uint32_t level_of(float share, float chance) const noexcept {
    const float exact = std::abs(share) * static_cast<float>(levels_);
    const auto least = static_cast<std::uint32_t>(exact);
    const auto up = chance < exact - static_cast<float>(least) ? 1U : 0U;
    const auto level = std::min(levels_, least + up);
    return share < 0 ? levels_ - level : levels_ + level;
  }

  std::uint32_t levels_;
  std::size_t bits_;
};

class Qsgd final : public Scheme {
 public:
  explicit Qsgd(const SchemeSetup& setup)
      : codec_(static_cast<std::uint32_t>(setup.parameters->whole("levels"))),
        seed_(setup.parameters->whole("seed")),
        rank_(static_cast<std::uint64_t>(setup.rank)),
        blocks_(fixed_blocks(setup.elements, setup.parameters->whole("bucket"), setup.size), codec_,
                setup.rank) {}

  Outcome exchange(Exchange& x) override {
    const auto key = random_key(seed_, x.report.step, rank_);
    return blocks_.run(x, x.gradient, {}, key) ? Outcome::done : Outcome::non_finite;
  }

 private:
  QsgdCodec codec_;
  std::uint64_t seed_, rank_;
  BlockAllreduce blocks_;
};

}  // namespace

std::unique_ptr<Scheme> make_qsgd(const SchemeSetup& setup) {
  return std::make_unique<Qsgd>(setup);
}

}  // namespace sinew
