#include "kernel/checksum.hpp"

#include <cstring>

#include "kernel/simd_targets.hpp"

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

using Lane = hn::Full128<std::uint8_t>;
constexpr std::size_t kLanes = 8;  // a round takes four cycles, and two begin in each
constexpr std::size_t kLaneBytes = 16;
constexpr std::size_t kStripeBytes = kLanes * kLaneBytes;

std::uint64_t sum(const std::uint8_t* data, std::size_t bytes) {
  const Lane d;
  const auto first = hn::Iota(d, 0);
  hn::Vec<Lane> lanes[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    lanes[lane] = hn::Iota(d, static_cast<std::uint8_t>(lane * kLaneBytes));
  const auto rest = bytes % kStripeBytes;
  for (const auto* const end = data + (bytes - rest); data != end; data += kStripeBytes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = hn::AESRound(lanes[lane], hn::LoadU(d, data + lane * kLaneBytes));
  if (rest != 0) {
    alignas(kLaneBytes) std::uint8_t last[kStripeBytes] = {};
    std::memcpy(last, data, rest);
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = hn::AESRound(lanes[lane], hn::Load(d, last + lane * kLaneBytes));
  }
  for (int i = 0; i < 4; ++i)
    for (auto& lane : lanes) lane = hn::AESRound(lane, first);
  alignas(kLaneBytes) std::uint64_t length[2] = {bytes, 0};
  auto all = hn::Load(d, reinterpret_cast<const std::uint8_t*>(length));
  for (const auto& lane : lanes) all = hn::AESRound(all, lane);
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
