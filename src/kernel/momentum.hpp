// The update of gradient descent with momentum, in one pass over parameters and moments.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace sinew {

/// A moment whose gradient stays away shrinks until it is a denormal number, with which processors
/// compute many times slower; long before, it moves no parameter any more.
inline constexpr float kVanished = 1e-30F;
inline float unless_vanished(float moment) noexcept {
  return std::abs(moment) < kVanished ? 0.0F : moment;
}

struct MomentumStep {
  float momentum = 0, decay = 0, rate = 0, scale = 1;
};
/// moment = momentum * moment + (scale * gradient + decay * parameter), parameter -= rate * moment,
/// gradient = 0; every product and sum is rounded. All of one length. False when the gradient had a
/// NaN or an infinity.
bool update_by_momentum(std::span<float> parameters, std::span<float> gradient,
                        std::span<float> moments, const MomentumStep& step) noexcept;
/// The same, plain C++: what the SIMD one is tested against.
bool update_by_momentum_scalar(std::span<float> parameters, std::span<float> gradient,
                               std::span<float> moments, const MomentumStep& step) noexcept;

}  // namespace sinew
