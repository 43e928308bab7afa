// GaussianK: as many elements as a normal distribution of the same mean and spread would have above
// its quantile, after a few corrections; gathered by everybody.
#include <cmath>

#include "compress/item_gather.hpp"
#include "compress/schemes.hpp"
#include "compress/select_above.hpp"

namespace sinew {
namespace {

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments(std::span<const float> values) {
  // Independent sums, so that the compiler may keep them in vectors.
  constexpr std::size_t kLanes = 8;
  double sums[kLanes] = {}, squares[kLanes] = {};
  std::size_t at = 0;
  for (; at + kLanes <= values.size(); at += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[at + lane];
      sums[lane] += value;
      squares[lane] += value * value;
    }
  for (; at < values.size(); ++at) {
    sums[0] += values[at];
    squares[0] += static_cast<double>(values[at]) * values[at];
  }
  double sum = 0, square = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sum += sums[lane];
    square += squares[lane];
  }
  const auto count = static_cast<double>(values.size());
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(0.0, square / count - mean * mean))};
}

std::size_t count_above(std::span<const float> values, Magnitude floor) {
  std::size_t count = 0;
  constexpr std::size_t kBlock = 1 << 16;  // its count fits 32 bits, which vectors like better
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    std::uint32_t here = 0;
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    for (const float value : block) here += magnitude(value) >= floor ? 1U : 0U;
    count += here;
  }
  return count;
}

// How many deviations from the mean leave `tail` of a normal distribution outside, on both sides.
double normal_quantile(double tail) {
  double low = 0, high = 40;
  for (int halving = 0; halving < 80; ++halving) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

class GaussianK final : public Scheme {
 public:
  explicit GaussianK(const SchemeSetup& setup)
      : target_(setup.target_items),
        deviations_(setup.elements == 0 ? 0
                                        : normal_quantile(static_cast<double>(target_) /
                                                          static_cast<double>(setup.elements))),
        corrections_(setup.parameters->whole("corrections")),
        correction_((*setup.parameters)["correction"]),
        gather_(setup.elements, setup.size) {}

  Outcome exchange(Exchange& x) override {
    const auto chosen = choose(x);
    if (!gather_.run(x, chosen.indices, chosen.values, chosen.finite)) return Outcome::non_finite;
    x.feedback.take(chosen.indices);
    x.feedback.commit();
    return Outcome::done;
  }

 private:
  SelectAbove::Chosen choose(Exchange& x) {
    const auto timed = x.time(Part::accumulate_select);
    const auto sum = x.feedback.accumulate(x.gradient);
    if (sum.empty()) return {};
    const auto [mean, deviation] = moments(sum);
    // Only what is not finite makes them so; then everything above infinity is to be reported.
    if (!std::isfinite(deviation)) return select_.choose(sum, kInfinity);
    return select_.choose(sum, correct(sum, std::abs(mean) + deviation * deviations_));
  }

  // Up and down: a tail that is not normal is found either way.
  [[nodiscard]] Magnitude correct(std::span<const float> sum, double threshold) const {
    auto floor = magnitude(static_cast<float>(threshold));
    for (std::uint64_t i = 0; i < corrections_ && floor >= kSmallest; ++i) {
      const auto count = count_above(sum, floor);
      if (4 * count < 3 * target_)
        threshold *= 1 - correction_;
      else if (4 * count > 5 * target_)
        threshold *= 1 + correction_;
      else
        break;
      floor = magnitude(static_cast<float>(threshold));
    }
    return floor;
  }

  std::uint64_t target_;
  double deviations_;
  std::uint64_t corrections_;
  double correction_;
  SelectAbove select_;
  ItemGather gather_;
};

}  // namespace

std::unique_ptr<Scheme> make_gaussiank(const SchemeSetup& setup) {
  return std::make_unique<GaussianK>(setup);
}

}  // namespace sinew
