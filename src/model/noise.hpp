// Random factors on times: drawn from a seed and a name, so that they do not depend on the order in
// which they are asked for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "base/counter_random.hpp"
#include "model/network.hpp"

namespace sinew {

/// With mean 1 and the deviation of `noise`; never below 0.
inline double noise_factor(const Noise& noise, std::uint64_t key, std::uint64_t counter) {
  if (noise.deviation == 0) return 1;
  const auto unit = [&](std::uint64_t which) {  // in (0, 1)
    return (static_cast<double>(random_bits(key, 2 * counter + which) >> 12) + 0.5) * 0x1p-52;
  };
  const double sigma = noise.deviation;
  const auto normal = [&] {
    return std::sqrt(-2 * std::log(unit(0))) * std::cos(2 * std::numbers::pi * unit(1));
  };
  switch (noise.kind) {
    case Noise::Kind::normal:
      return std::max(0.0, 1 + sigma * normal());
    case Noise::Kind::lognormal: {
      const double variance = std::log1p(sigma * sigma);
      return std::exp(std::sqrt(variance) * normal() - variance / 2);
    }
    case Noise::Kind::exponential:
      return std::max(0.0, 1 - sigma - sigma * std::log(unit(0)));
    case Noise::Kind::pareto: {  // of shape 3: mean 3/2, variance 3/4
      const double drawn = std::pow(unit(0), -1.0 / 3);
      return std::max(0.0, 1 + sigma * (drawn - 1.5) / std::sqrt(0.75));
    }
  }
  return 1;
}

}  // namespace sinew
