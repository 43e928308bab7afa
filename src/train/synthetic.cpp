#include "train/synthetic.hpp"

#include <array>
#include <cmath>
#include <numbers>

#include "base/counter_random.hpp"

namespace sinew {
namespace {

constexpr std::int64_t kSide = 28, kClasses = 10, kFeatures = 10;
// The second word of random_key(): which numbers these are.
enum Stream : std::uint64_t { kShapes = 1, kLabels, kShifts, kNoise, kRowNumbers };

/// Samples of either part are numbered on: those for testing come after those for training.
class Patterns final : public Dataset {
 public:
  Patterns(std::size_t first, std::size_t samples, std::uint64_t seed)
      : first_(first), samples_(samples), seed_(seed) {
    const auto key = random_key(seed, kShapes);
    for (std::size_t i = 0; i < waves_.size(); ++i)
      for (std::size_t part = 0; part < waves_[i].size(); ++part)
        waves_[i][part] = random_unit(key, i * 16 + part);
  }
  [[nodiscard]] std::size_t samples() const noexcept override { return samples_; }
  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept override { return kShape; }
  [[nodiscard]] int classes() const noexcept override { return kClasses; }

  void fill(std::span<const std::uint32_t> which, Batch& into) const override {
    into.shape = {static_cast<std::int64_t>(which.size()), 1, kSide, kSide};
    into.inputs.resize(which.size() * kSide * kSide);
    into.labels.resize(which.size());
    auto to = std::span(into.inputs);
    for (std::size_t i = 0; i < which.size(); ++i) {
      const auto sample = first_ + which[i];
      into.labels[i] = static_cast<std::int64_t>(random_bits(random_key(seed_, kLabels), sample) %
                                                 static_cast<std::uint64_t>(kClasses));
      draw(sample, static_cast<std::size_t>(into.labels[i]), to.subspan(i * kSide * kSide));
    }
  }

 private:
  void draw(std::size_t sample, std::size_t label, std::span<float> image) const {
    const auto& wave = waves_[label];
    const auto shift_key = random_key(seed_, kShifts), noise = random_key(seed_, kNoise, sample);
    const float dx = 4 * random_unit(shift_key, 2 * sample),
                dy = 4 * random_unit(shift_key, 2 * sample + 1);
    for (std::int64_t y = 0; y < kSide; ++y)
      for (std::int64_t x = 0; x < kSide; ++x) {
        const auto at = static_cast<std::size_t>(y * kSide + x);
        const float u = (static_cast<float>(x) + dx) / kSide,
                    v = (static_cast<float>(y) + dy) / kSide;
        const float value = std::sin(6 * (wave[0] * u + wave[1] * v) + 6 * wave[2]) +
                            std::sin(15 * (wave[3] * u - wave[4] * v) + 6 * wave[5]);
        image[at] = value + (random_unit(noise, at) - 0.5F) * 3;
      }
  }

  static constexpr std::int64_t kShape[] = {1, kSide, kSide};
  std::size_t first_, samples_;
  std::uint64_t seed_;
  std::array<std::array<float, 6>, kClasses> waves_{};
};

class Rows final : public Dataset {
 public:
  Rows(std::size_t first, std::size_t samples, std::uint64_t seed)
      : samples_(samples), numbers_(samples * kFeatures), labels_(samples) {
    const auto key = random_key(seed, kRowNumbers);
    for (std::size_t row = 0; row < samples; ++row) {
      float sum = 0;
      for (std::size_t i = 0; i < kFeatures; ++i) {
        numbers_[row * kFeatures + i] = random_normal(key, (first + row) * kFeatures + i);
        sum += numbers_[row * kFeatures + i];
      }
      const float rest = sum - kClasses * std::floor(sum / kClasses);
      labels_[row] = std::min<std::int64_t>(static_cast<std::int64_t>(rest), kClasses - 1);
    }
  }
  [[nodiscard]] std::size_t samples() const noexcept override { return samples_; }
  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept override { return kShape; }
  [[nodiscard]] int classes() const noexcept override { return kClasses; }

  void fill(std::span<const std::uint32_t> which, Batch& into) const override {
    into.shape = {static_cast<std::int64_t>(which.size()), kFeatures};
    into.inputs.clear();
    into.labels.clear();
    for (const auto row : which) {
      const auto* begin = numbers_.data() + row * kFeatures;
      into.inputs.insert(into.inputs.end(), begin, begin + kFeatures);
      into.labels.push_back(labels_[row]);
    }
  }

 private:
  static constexpr std::int64_t kShape[] = {kFeatures};
  std::size_t samples_;
  std::vector<float> numbers_;
  std::vector<std::int64_t> labels_;
};

template <class Made>
Data make_both(std::size_t samples, std::uint64_t seed) {
  return {std::make_unique<Made>(0, samples, seed),
          std::make_unique<Made>(samples, samples / 4 + 1, seed)};
}

}  // namespace

float random_normal(std::uint64_t key, std::uint64_t counter) noexcept {
  const double a = (static_cast<double>(random_bits(key, 2 * counter) >> 11) + 1) * 0x1p-53;
  const double b = static_cast<double>(random_bits(key, 2 * counter + 1) >> 11) * 0x1p-53;
  return static_cast<float>(std::sqrt(-2 * std::log(a)) * std::cos(2 * std::numbers::pi * b));
}

Data make_patterns(std::size_t samples, std::uint64_t seed) {
  return make_both<Patterns>(samples, seed);
}
Data make_rows(std::size_t samples, std::uint64_t seed) { return make_both<Rows>(samples, seed); }

}  // namespace sinew
