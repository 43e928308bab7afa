#include "kernel/copy.hpp"

#include <cstring>

#include "kernel/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/copy.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h: these are compiled for every target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sinew {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void copy_streamed(std::byte* dst, const std::byte* src, std::size_t bytes) {
  std::memcpy(dst, src, bytes);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

/// At least a block and a vector long.
void copy_streamed(std::byte* dst, const std::byte* src, std::size_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t vector = hn::Lanes(d);
  auto* to = reinterpret_cast<std::uint8_t*>(dst);
  const auto* from = reinterpret_cast<const std::uint8_t*>(src);

  const std::size_t misalignment = reinterpret_cast<std::uintptr_t>(dst) % vector;
  std::size_t at = misalignment == 0 ? 0 : vector - misalignment;
  std::memcpy(dst, src, at);
  for (; at + 4 * vector <= bytes; at += 4 * vector) {
    const auto v0 = hn::LoadU(d, from + at), v1 = hn::LoadU(d, from + at + vector);
    const auto v2 = hn::LoadU(d, from + at + 2 * vector), v3 = hn::LoadU(d, from + at + 3 * vector);
    hn::Stream(v0, d, to + at);
    hn::Stream(v1, d, to + at + vector);
    hn::Stream(v2, d, to + at + 2 * vector);
    hn::Stream(v3, d, to + at + 3 * vector);
  }
  hwy::FlushStream();  // before whatever tells a reader that the data is there
  std::memcpy(dst + at, src + at, bytes - at);
}

#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace sinew
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinew {

HWY_EXPORT(copy_streamed);

// Below a page the fence costs more than the stores save.
constexpr std::size_t kStreamingBytes = 4096;

void copy_bytes(std::byte* dst, const std::byte* src, std::size_t bytes, bool streaming) noexcept {
  if (dst == src || bytes == 0) return;
  if (streaming && bytes >= kStreamingBytes) {
    HWY_DYNAMIC_DISPATCH(copy_streamed)(dst, src, bytes);
  } else {
    std::memcpy(dst, src, bytes);
  }
}

}  // namespace sinew
#endif
