// Conversion of arrays, with the bits of the scalar functions in base/half.cpp.
#include "kernel/convert.hpp"

#include "kernel/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/convert.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h: these are compiled for every target.
#include <hwy/highway.h>
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernel/lanes-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace sinew {
namespace HWY_NAMESPACE {

// Each returns how many elements it did; the caller does the few that are left one by one.

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

std::size_t narrow_f16(const float*, f16*, std::size_t) { return 0; }
std::size_t narrow_bf16(const float*, bf16*, std::size_t) { return 0; }
std::size_t widen_f16(const f16*, float*, std::size_t) { return 0; }
std::size_t widen_bf16(const bf16*, float*, std::size_t) { return 0; }
std::size_t add_bf16(const bf16*, float*, std::size_t) { return 0; }

#else

std::size_t narrow_f16(const float* from, f16* to, std::size_t elements) {
  using L = Lanes<f16>;
  std::size_t i = 0;
  for (; i + L::kElements <= elements; i += L::kElements) {
    L::store(hn::LoadU(L::D{}, from + i), reinterpret_cast<std::byte*>(to + i));
  }
  return i;
}

std::size_t widen_f16(const f16* from, float* to, std::size_t elements) {
  using L = Lanes<f16>;
  std::size_t i = 0;
  for (; i + L::kElements <= elements; i += L::kElements) {
    hn::StoreU(L::load(reinterpret_cast<const std::byte*>(from + i)), L::D{}, to + i);
  }
  return i;
}

// Here, unlike in Lanes<bf16>, the order of lanes does matter.
std::size_t narrow_bf16(const float* from, bf16* to, std::size_t elements) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> du32;
  const hn::RebindToSigned<decltype(df)> di32;
  const hn::Rebind<std::uint16_t, decltype(df)> du16;
  const std::size_t lanes = hn::Lanes(df);
  std::size_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    const auto v = hn::LoadU(df, from + i);
    const auto bits = hn::BitCast(du32, v);
    const auto quiet = hn::Or(bits, hn::Set(du32, 0x0040'0000U));
    const auto is_nan = hn::RebindMask(du32, hn::IsNaN(v));
    const auto chosen = hn::IfThenElse(is_nan, quiet, round_to_upper_half(du32, bits));
    const auto upper = hn::DemoteTo(du16, hn::BitCast(di32, hn::ShiftRight<16>(chosen)));
    hn::StoreU(upper, du16, reinterpret_cast<std::uint16_t*>(to + i));
  }
  return i;
}

// In the order of memory, too.
template <class D>
HWY_INLINE hn::Vec<D> widened(D df, const bf16* from) {
  const hn::RebindToUnsigned<D> du32;
  const hn::Rebind<std::uint16_t, D> du16;
  const auto bits = hn::LoadU(du16, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(du32, bits)));
}

std::size_t widen_bf16(const bf16* from, float* to, std::size_t elements) {
  const hn::ScalableTag<float> df;
  const std::size_t lanes = hn::Lanes(df);
  std::size_t i = 0;
  for (; i + lanes <= elements; i += lanes) hn::StoreU(widened(df, from + i), df, to + i);
  return i;
}

std::size_t add_bf16(const bf16* from, float* to, std::size_t elements) {
  const hn::ScalableTag<float> df;
  const std::size_t lanes = hn::Lanes(df);
  std::size_t i = 0;
  for (; i + lanes <= elements; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(df, to + i), widened(df, from + i)), df, to + i);
  return i;
}

#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace sinew
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace sinew {

HWY_EXPORT(narrow_f16);
HWY_EXPORT(narrow_bf16);
HWY_EXPORT(widen_f16);
HWY_EXPORT(widen_bf16);
HWY_EXPORT(add_bf16);

void convert(std::span<const float> from, std::span<f16> to) noexcept {
  const std::size_t elements = std::min(from.size(), to.size());
  std::size_t i = HWY_DYNAMIC_DISPATCH(narrow_f16)(from.data(), to.data(), elements);
  for (; i < elements; ++i) to[i] = to_f16(from[i]);
}

void convert(std::span<const float> from, std::span<bf16> to) noexcept {
  const std::size_t elements = std::min(from.size(), to.size());
  std::size_t i = HWY_DYNAMIC_DISPATCH(narrow_bf16)(from.data(), to.data(), elements);
  for (; i < elements; ++i) to[i] = to_bf16(from[i]);
}

void convert(std::span<const f16> from, std::span<float> to) noexcept {
  const std::size_t elements = std::min(from.size(), to.size());
  std::size_t i = HWY_DYNAMIC_DISPATCH(widen_f16)(from.data(), to.data(), elements);
  for (; i < elements; ++i) to[i] = to_float(from[i]);
}

void convert(std::span<const bf16> from, std::span<float> to) noexcept {
  const std::size_t elements = std::min(from.size(), to.size());
  std::size_t i = HWY_DYNAMIC_DISPATCH(widen_bf16)(from.data(), to.data(), elements);
  for (; i < elements; ++i) to[i] = to_float(from[i]);
}

void add_converted(std::span<const bf16> from, std::span<float> to) noexcept {
  const std::size_t elements = std::min(from.size(), to.size());
  std::size_t i = HWY_DYNAMIC_DISPATCH(add_bf16)(from.data(), to.data(), elements);
  for (; i < elements; ++i) to[i] += to_float(from[i]);
}

}  // namespace sinew
#endif
