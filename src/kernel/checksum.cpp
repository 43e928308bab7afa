#include "kernel/checksum.hpp"

#include <cstring>

#include "kernel/simd_targets.hpp"

// Processors with AES instructions for four lanes at once; the other kernels have no use for it.
#define HWY_WANT_AVX3_DL

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/checksum.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h: this is compiled for every target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sinew {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

std::uint64_t sum(const std::uint8_t* data, std::size_t bytes) {
  return checksum_scalar({reinterpret_cast<const std::byte*>(data), bytes});
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// As many lanes in a vector as the machine's AES instructions take.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
using Lanes = hn::Full512<std::uint8_t>;
#else
using Lanes = hn::Full128<std::uint8_t>;
#endif
using Lane = hn::Full128<std::uint8_t>;
constexpr std::size_t kLaneBytes = 16;
constexpr std::size_t kStripeBytes = 16 * kLaneBytes;
constexpr std::size_t kVectorBytes = hn::MaxLanes(Lanes());
constexpr std::size_t kVectors = kStripeBytes / kVectorBytes;

std::uint64_t sum(const std::uint8_t* data, std::size_t bytes) {
  const Lanes d;
  hn::Vec<Lanes> lanes[kVectors];
  for (std::size_t i = 0; i < kVectors; ++i)
    lanes[i] = hn::Iota(d, static_cast<std::uint8_t>(i * kVectorBytes));
  const auto rest = bytes % kStripeBytes;
  for (const auto* const end = data + (bytes - rest); data != end; data += kStripeBytes)
    for (std::size_t i = 0; i < kVectors; ++i)
      lanes[i] = hn::AESRound(lanes[i], hn::LoadU(d, data + i * kVectorBytes));
  alignas(64) std::uint8_t stripe[kStripeBytes] = {};
  if (rest != 0) {
    std::memcpy(stripe, data, rest);
    for (std::size_t i = 0; i < kVectors; ++i)
      lanes[i] = hn::AESRound(lanes[i], hn::Load(d, stripe + i * kVectorBytes));
  }
  const Lane lane;
  const auto first = hn::Iota(lane, 0);
  alignas(kLaneBytes) std::uint8_t counted[kLaneBytes];
  hn::Store(first, lane, counted);
  for (std::size_t i = 0; i < kVectors; ++i) {
    for (int round = 0; round < 4; ++round)
      lanes[i] = hn::AESRound(lanes[i], hn::LoadDup128(d, counted));
    hn::Store(lanes[i], d, stripe + i * kVectorBytes);
  }
  alignas(kLaneBytes) std::uint64_t length[2] = {bytes, 0};
  auto all = hn::Load(lane, reinterpret_cast<const std::uint8_t*>(length));
  for (std::size_t at = 0; at < kStripeBytes; at += kLaneBytes)
    all = hn::AESRound(all, hn::Load(lane, stripe + at));
  for (int i = 0; i < 3; ++i) all = hn::AESRound(all, first);
  return hn::GetLane(hn::BitCast(hn::Full128<std::uint64_t>(), all));
}

#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace sinew
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinew {
namespace {
HWY_EXPORT(sum);
}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes) noexcept {
  return HWY_DYNAMIC_DISPATCH(sum)(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                   bytes.size());
}

}  // namespace sinew
#endif
