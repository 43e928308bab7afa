#include "kernel/shuffle.hpp"

#include <cstdint>

#include "kernel/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/shuffle.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h: these are compiled for every target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sinew {
namespace HWY_NAMESPACE {

// Each returns how many elements it did; the caller does the few that are left one by one.
// `stride`: elements, and so the distance between the planes of bytes.

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

std::size_t split_2(const std::uint8_t*, std::uint8_t*, std::size_t) { return 0; }
std::size_t split_4(const std::uint8_t*, std::uint8_t*, std::size_t) { return 0; }
std::size_t join_2(const std::uint8_t*, std::uint8_t*, std::size_t) { return 0; }
std::size_t join_4(const std::uint8_t*, std::uint8_t*, std::size_t) { return 0; }

#else

namespace hn = hwy::HWY_NAMESPACE;
using Bytes = hn::ScalableTag<std::uint8_t>;

std::size_t split_2(const std::uint8_t* from, std::uint8_t* to, std::size_t stride) {
  const Bytes d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= stride; i += hn::Lanes(d)) {
    hn::Vec<Bytes> a, b;
    hn::LoadInterleaved2(d, from + 2 * i, a, b);
    hn::StoreU(a, d, to + i);
    hn::StoreU(b, d, to + stride + i);
  }
  return i;
}

std::size_t split_4(const std::uint8_t* from, std::uint8_t* to, std::size_t stride) {
  const Bytes d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= stride; i += hn::Lanes(d)) {
    hn::Vec<Bytes> a, b, c, e;
    hn::LoadInterleaved4(d, from + 4 * i, a, b, c, e);
    hn::StoreU(a, d, to + i);
    hn::StoreU(b, d, to + stride + i);
    hn::StoreU(c, d, to + 2 * stride + i);
    hn::StoreU(e, d, to + 3 * stride + i);
  }
  return i;
}

std::size_t join_2(const std::uint8_t* from, std::uint8_t* to, std::size_t stride) {
  const Bytes d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= stride; i += hn::Lanes(d))
    hn::StoreInterleaved2(hn::LoadU(d, from + i), hn::LoadU(d, from + stride + i), d, to + 2 * i);
  return i;
}

std::size_t join_4(const std::uint8_t* from, std::uint8_t* to, std::size_t stride) {
  const Bytes d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= stride; i += hn::Lanes(d))
    hn::StoreInterleaved4(hn::LoadU(d, from + i), hn::LoadU(d, from + stride + i),
                          hn::LoadU(d, from + 2 * stride + i), hn::LoadU(d, from + 3 * stride + i),
                          d, to + 4 * i);
  return i;
}

#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace sinew
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstring>

namespace sinew {
namespace {

HWY_EXPORT(split_2);
HWY_EXPORT(split_4);
HWY_EXPORT(join_2);
HWY_EXPORT(join_4);

const std::uint8_t* u8(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}
std::uint8_t* u8(std::span<std::byte> bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}

void split_from(std::size_t first, std::span<const std::byte> from, std::size_t width,
                std::span<std::byte> to) {
  const auto elements = from.size() / width;
  for (std::size_t i = first; i < elements; ++i)
    for (std::size_t byte = 0; byte < width; ++byte)
      to[byte * elements + i] = from[i * width + byte];
  const auto whole = elements * width;
  if (whole < from.size()) std::memcpy(&to[whole], &from[whole], from.size() - whole);
}

void join_from(std::size_t first, std::span<const std::byte> from, std::size_t width,
               std::span<std::byte> to) {
  const auto elements = from.size() / width;
  for (std::size_t i = first; i < elements; ++i)
    for (std::size_t byte = 0; byte < width; ++byte)
      to[i * width + byte] = from[byte * elements + i];
  const auto whole = elements * width;
  if (whole < from.size()) std::memcpy(&to[whole], &from[whole], from.size() - whole);
}

}  // namespace

void shuffle_bytes_scalar(std::span<const std::byte> from, std::size_t width,
                          std::span<std::byte> to) noexcept {
  split_from(0, from, width, to);
}

void unshuffle_bytes_scalar(std::span<const std::byte> from, std::size_t width,
                            std::span<std::byte> to) noexcept {
  join_from(0, from, width, to);
}

void shuffle_bytes(std::span<const std::byte> from, std::size_t width,
                   std::span<std::byte> to) noexcept {
  const auto elements = from.size() / width;
  std::size_t done = 0;
  if (width == 2) done = HWY_DYNAMIC_DISPATCH(split_2)(u8(from), u8(to), elements);
  if (width == 4) done = HWY_DYNAMIC_DISPATCH(split_4)(u8(from), u8(to), elements);
  split_from(done, from, width, to);
}

void unshuffle_bytes(std::span<const std::byte> from, std::size_t width,
                     std::span<std::byte> to) noexcept {
  const auto elements = from.size() / width;
  std::size_t done = 0;
  if (width == 2) done = HWY_DYNAMIC_DISPATCH(join_2)(u8(from), u8(to), elements);
  if (width == 4) done = HWY_DYNAMIC_DISPATCH(join_4)(u8(from), u8(to), elements);
  join_from(done, from, width, to);
}

}  // namespace sinew
#endif
