#include "kernel/sparse.hpp"

#include "kernel/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/sparse.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h: these are compiled for every target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace sinew {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void write_vectors(std::span<float> vector, SparseItems items, float divisor, bool) {
  write_sparse_scalar(vector, items, divisor);
}
std::size_t take_vectors(TouchedBlock& block, std::uint32_t first, ItemRoom room,
                         std::size_t count) {
  return take_touched_scalar(block, first, room, count);
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using U = hn::RebindToUnsigned<F>;

// `streaming`: `to` is aligned.
HWY_INLINE void emit(const float* staged, float* to, std::size_t elements, bool streaming) {
  const F d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    const auto values = hn::Load(d, staged + i);
    if (streaming)
      hn::Stream(values, d, to + i);
    else
      hn::StoreU(values, d, to + i);
  }
  for (; i < elements; ++i) to[i] = staged[i];
}

// Items are put into a small block of zeros, which is then written as a whole: every line of the
// vector is written once, and none is read. Then they become zeros again.
void write_vectors(std::span<float> vector, SparseItems items, float divisor, bool streaming) {
  constexpr std::size_t kBlock = 2048;
  alignas(64) float staged[kBlock] = {};
  float* const to = vector.data();
  const auto* const indices = items.indices.data();
  const auto* const values = items.values.data();
  const std::size_t count = items.indices.size();
  const auto misaligned = reinterpret_cast<std::uintptr_t>(to) / sizeof(float) % hn::Lanes(F{});
  std::size_t end = misaligned == 0 ? 0 : std::min(vector.size(), hn::Lanes(F{}) - misaligned);
  std::size_t item = 0;
  for (std::size_t begin = 0; begin < vector.size(); begin = end) {
    end = begin == 0 && end != 0 ? end : std::min(vector.size(), begin + kBlock);
    const std::size_t first = item;
    for (; item < count && indices[item] < end; ++item)
      staged[indices[item] - begin] = values[item] / divisor;
    emit(staged, to + begin, end - begin, streaming);
    for (std::size_t i = first; i < item; ++i) staged[indices[i] - begin] = 0;
  }
  if (streaming) hwy::FlushStream();
}

// Of 16 elements, those with a bit.
HWY_INLINE std::size_t take_group(float* sums, std::uint16_t touched, std::uint32_t first,
                                  ItemRoom room, std::size_t count) {
  const F d;
  const U du;
  const std::uint64_t padded = touched;  // masks are loaded eight bytes at a time
  const auto* const bits = reinterpret_cast<const std::uint8_t*>(&padded);
  for (std::size_t i = 0; i < TouchedBlock::kGroup; i += hn::Lanes(d)) {
    const auto taken = hn::LoadMaskBits(d, bits + i / 8);
    const auto index = hn::Add(hn::Iota(du, 0), hn::Set(du, static_cast<std::uint32_t>(first + i)));
    hn::StoreU(hn::Compress(hn::Load(d, sums + i), taken), d, room.values + count);
    hn::StoreU(hn::Compress(index, hn::RebindMask(du, taken)), du, room.indices + count);
    hn::Store(hn::Zero(d), d, sums + i);
    count += hn::CountTrue(d, taken);
  }
  return count;
}

// A branch for each group would be mispredicted too often: those with a bit are found by vectors.
std::size_t take_vectors(TouchedBlock& block, std::uint32_t first, ItemRoom room,
                         std::size_t count) {
  const hn::ScalableTag<std::uint16_t> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t groups = 0; groups < TouchedBlock::kGroups; groups += lanes) {
    const auto words = hn::Load(d, block.touched + groups);
    std::uint64_t present = 0;
    hn::StoreMaskBits(d, hn::Ne(words, hn::Zero(d)), reinterpret_cast<std::uint8_t*>(&present));
    for (; present != 0; present &= present - 1) {
      const auto group = groups + static_cast<std::size_t>(std::countr_zero(present));
      const auto at = group * TouchedBlock::kGroup;
      count = take_group(block.sums + at, block.touched[group],
                         static_cast<std::uint32_t>(first + at), room, count);
    }
    hn::Store(hn::Zero(d), d, block.touched + groups);
  }
  return count;
}

#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace sinew
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinew {
namespace {

// Past this the vector does not stay in cache, and ordinary stores would first read what they
// replace.
constexpr std::size_t kStreamingElements = std::size_t{1} << 20;

}  // namespace

HWY_EXPORT(write_vectors);
HWY_EXPORT(take_vectors);

void write_sparse(std::span<float> vector, SparseItems items, float divisor) noexcept {
  const bool aligned = reinterpret_cast<std::uintptr_t>(vector.data()) % sizeof(float) == 0;
  HWY_DYNAMIC_DISPATCH(write_vectors)
  (vector, items, divisor, aligned && vector.size() >= kStreamingElements);
}

std::size_t take_touched(TouchedBlock& block, std::uint32_t first, ItemRoom room,
                         std::size_t count) noexcept {
  return HWY_DYNAMIC_DISPATCH(take_vectors)(block, first, room, count);
}

void write_sparse_scalar(std::span<float> vector, SparseItems items, float divisor) noexcept {
  std::fill(vector.begin(), vector.end(), 0.0F);
  for (std::size_t i = 0; i < items.indices.size(); ++i)
    vector[items.indices[i]] = items.values[i] / divisor;
}

std::size_t take_touched_scalar(TouchedBlock& block, std::uint32_t first, ItemRoom room,
                                std::size_t count) noexcept {
  for (std::size_t i = 0; i < TouchedBlock::kElements; ++i) {
    if ((block.touched[i / TouchedBlock::kGroup] >> i % TouchedBlock::kGroup & 1) == 0) continue;
    room.indices[count] = static_cast<std::uint32_t>(first + i);
    room.values[count++] = std::exchange(block.sums[i], 0.0F);
  }
  std::fill(std::begin(block.touched), std::end(block.touched), 0);
  return count;
}

}  // namespace sinew
#endif
