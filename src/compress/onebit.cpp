// 1-bit: the sign of every element, and for each column (or tensor) the mean of those below zero
// and of the others. Everything else stays with whoever rounded, and comes along next time.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "compress/block_allreduce.hpp"
#include "compress/schemes.hpp"

namespace sinew {
namespace {

// f32 mean of negatives | f32 mean of the others | a bit for each element: 1 where not negative.
class OneBitCodec final : public BlockCodec {
 public:
  [[nodiscard]] std::size_t bytes(std::size_t elements) const noexcept override {
    return 2 * sizeof(float) + (elements + 7) / 8;
  }
  void encode(std::span<const float> block, std::uint64_t /*key*/, std::uint64_t /*first*/,
              std::byte* to) const noexcept override {
    auto* const bits = to + 2 * sizeof(float);
    double sums[2] = {};
    std::size_t positives = 0;
    for (std::size_t begin = 0; begin < block.size(); begin += 8) {
      unsigned byte = 0;
      for (std::size_t i = begin; i < std::min(begin + 8, block.size()); ++i) {
        const unsigned positive = block[i] < 0 ? 0 : 1;  // a NaN is there, and its mean says so
        sums[positive] += static_cast<double>(block[i]);
        byte |= positive << (i - begin);
      }
      positives += static_cast<std::size_t>(std::popcount(byte));
      bits[begin / 8] = static_cast<std::byte>(byte);
    }
    const float means[] = {mean(sums[0], block.size() - positives), mean(sums[1], positives)};
    std::memcpy(to, means, sizeof means);
  }
  void decode(const std::byte* from, std::span<float> block) const noexcept override {
    float means[2];
    std::memcpy(means, from, sizeof means);
    const auto* const bits = from + sizeof means;
    for (std::size_t i = 0; i < block.size(); ++i)
      block[i] = means[std::to_integer<unsigned>(bits[i / 8]) >> i % 8 & 1];
  }
  [[nodiscard]] bool finite(const std::byte* from) const noexcept override {
    float means[2];
    std::memcpy(means, from, sizeof means);
    return std::isfinite(means[0]) && std::isfinite(means[1]);
  }

 private:
  static float mean(double sum, std::size_t count) noexcept {
    return count == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(count));
  }
};

class OneBit final : public Scheme {
 public:
  explicit OneBit(const SchemeSetup& setup)
      : blocks_(tensor_blocks(setup.layout, setup.parameters->whole("columns") != 0, setup.size),
                codec_, setup.rank) {}

  Outcome exchange(Exchange& x) override {
    const auto sum = x.feedback.accumulate(x.gradient);
    if (!blocks_.run(x, sum, sum, 0)) return Outcome::non_finite;
    x.feedback.commit();
    return Outcome::done;
  }

 private:
  OneBitCodec codec_;
  BlockAllreduce blocks_;
};

}  // namespace

std::unique_ptr<Scheme> make_onebit(const SchemeSetup& setup) {
  return std::make_unique<OneBit>(setup);
}

}  // namespace sinew
