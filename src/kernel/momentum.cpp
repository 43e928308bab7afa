#include "kernel/momentum.hpp"

#include "kernel/select.hpp"
#include "kernel/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/momentum.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h: this is compiled for every target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sinew {
namespace HWY_NAMESPACE {

// Does whole vectors and returns the number of elements done; the caller does the rest.

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

std::size_t momentum_vectors(float*, float*, float*, std::size_t, const MomentumStep&, bool&) {
  return 0;
}

#else

namespace hn = hwy::HWY_NAMESPACE;

std::size_t momentum_vectors(float* HWY_RESTRICT w, float* HWY_RESTRICT g, float* HWY_RESTRICT v,
                             std::size_t elements, const MomentumStep& step, bool& finite) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto momentum = hn::Set(d, step.momentum), decay = hn::Set(d, step.decay);
  const auto rate = hn::Set(d, step.rate), scale = hn::Set(d, step.scale);
  const auto vanished = hn::Set(d, kVanished);
  auto largest = hn::Zero(di);  // magnitudes, compared as integers: infinity and NaN are above all
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= elements; i += hn::Lanes(d)) {
    const auto gradient = hn::LoadU(d, g + i), parameter = hn::LoadU(d, w + i);
    const auto before = hn::LoadU(d, v + i);
    largest = hn::Max(largest, hn::BitCast(di, hn::Abs(gradient)));
    const auto slope = hn::Add(hn::Mul(scale, gradient), hn::Mul(decay, parameter));
    const auto sum = hn::Add(hn::Mul(momentum, before), slope);
    const auto moment = hn::IfThenZeroElse(hn::Lt(hn::Abs(sum), vanished), sum);
    hn::StoreU(moment, d, v + i);
    hn::StoreU(hn::Sub(parameter, hn::Mul(rate, moment)), d, w + i);
    hn::StoreU(hn::Zero(d), d, g + i);
  }
  finite = hn::AllFalse(di, hn::Gt(largest, hn::Set(di, static_cast<std::int32_t>(kInfinity) - 1)));
  return i;
}

#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace sinew
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinew {

HWY_EXPORT(momentum_vectors);

bool update_by_momentum(std::span<float> parameters, std::span<float> gradient,
                        std::span<float> moments, const MomentumStep& step) noexcept {
  bool finite = true;
  const auto done = HWY_DYNAMIC_DISPATCH(momentum_vectors)(
      parameters.data(), gradient.data(), moments.data(), gradient.size(), step, finite);
  return update_by_momentum_scalar(parameters.subspan(done), gradient.subspan(done),
                                   moments.subspan(done), step) &&
         finite;
}

bool update_by_momentum_scalar(std::span<float> parameters, std::span<float> gradient,
                               std::span<float> moments, const MomentumStep& step) noexcept {
  bool finite = true;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    finite &= magnitude(gradient[i]) < kInfinity;
    const float slope = step.scale * gradient[i] + step.decay * parameters[i];
    moments[i] = unless_vanished(step.momentum * moments[i] + slope);
    parameters[i] -= step.rate * moments[i];
    gradient[i] = 0;
  }
  return finite;
}

}  // namespace sinew
#endif
