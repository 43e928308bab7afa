#include "kernel/gaps.hpp"

#include "kernel/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/gaps.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h: these are compiled for every target.
#include <hwy/highway.h>

#include <array>
#include <bit>
#include <cstring>

// Once, though this file includes itself.
#ifndef SINEW_KERNEL_GAPS_ONCE
#define SINEW_KERNEL_GAPS_ONCE
namespace sinew::gaps {

constexpr std::size_t kAtOnce = 8;
constexpr std::uint32_t kMore = 0x80, kSeven = 0x7F, kMostOfTwo = 0x3FFF;

inline std::byte* put(std::uint32_t gap, std::byte* to) noexcept {
  for (; gap >= kMore; gap >>= 7) *to++ = static_cast<std::byte>(gap | kMore);
  *to++ = static_cast<std::byte>(gap);
  return to;
}

// Which byte comes where, for every set of eight bits; a lookup makes kNothing 0.
constexpr std::uint8_t kNothing = 0x80;
using Places = std::array<std::array<std::uint8_t, 2 * kAtOnce>, 256>;

/// Of eight gaps of two bytes the first bytes, and the second ones of those that are long, without
/// holes.
constexpr Places kTogether = [] {
  Places places{};
  for (std::size_t is_long = 0; is_long < places.size(); ++is_long) {
    auto& place = places[is_long];
    place.fill(kNothing);
    std::size_t to = 0;
    for (std::size_t gap = 0; gap < kAtOnce; ++gap) {
      place[to++] = static_cast<std::uint8_t>(2 * gap);
      if ((is_long >> gap & 1) != 0) place[to++] = static_cast<std::uint8_t>(2 * gap + 1);
    }
  }
  return places;
}();

/// Back again: of eight bytes, some of which say that another follows, the gaps that end there,
/// with two bytes each.
constexpr Places kApart = [] {
  Places places{};
  for (std::size_t more = 0; more < places.size(); ++more) {
    auto& place = places[more];
    place.fill(kNothing);
    for (std::size_t from = 0, gap = 0; from < kAtOnce; ++gap) {
      const bool is_long = (more >> from & 1) != 0;
      if (is_long && from + 1 == kAtOnce) break;
      place[2 * gap] = static_cast<std::uint8_t>(from++);
      if (is_long) place[2 * gap + 1] = static_cast<std::uint8_t>(from++);
    }
  }
  return places;
}();

}  // namespace sinew::gaps
#endif

HWY_BEFORE_NAMESPACE();
namespace sinew {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

std::byte* put_vectors(std::span<const std::uint32_t> indices, std::uint32_t base, std::byte* to) {
  return put_gaps_scalar(indices, base, to);
}
std::size_t take_vectors(GapPlace&, const std::byte*, std::uint64_t, std::span<std::uint32_t>) {
  return 0;
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using gaps::kAtOnce;
using Four = hn::FixedTag<std::uint32_t, 4>;
using Eight = hn::FixedTag<std::uint16_t, kAtOnce>;
using Bytes = hn::FixedTag<std::uint8_t, 2 * kAtOnce>;

template <class V>
HWY_INLINE auto looked_up(V values, const gaps::Places::value_type& places) {
  return hn::TableLookupBytesOr0(hn::BitCast(Bytes{}, values), hn::LoadU(Bytes{}, places.data()));
}

std::byte* put_vectors(std::span<const std::uint32_t> indices, std::uint32_t base, std::byte* to) {
  if (indices.empty()) return to;
  const auto* const from = indices.data();
  const auto gaps_at = [=](std::size_t i) {
    const auto left_out = hn::Sub(hn::LoadU(Four{}, from + i), hn::LoadU(Four{}, from + i - 1));
    return hn::Sub(left_out, hn::Set(Four{}, 1));
  };
  const auto in_two = [](auto gaps) {  // bytes
    return hn::DemoteTo(hn::Half<Eight>{}, hn::BitCast(hn::RebindToSigned<Four>{}, gaps));
  };
  const auto seven = hn::Set(Eight{}, gaps::kSeven), more = hn::Set(Eight{}, gaps::kMore);
  to = gaps::put(from[0] - base, to);
  for (std::size_t i = 1; i < indices.size();) {
    if (i + kAtOnce <= indices.size()) {
      const auto low = gaps_at(i), high = gaps_at(i + kAtOnce / 2);
      if (hn::AllFalse(Four{}, hn::Gt(hn::Max(low, high), hn::Set(Four{}, gaps::kMostOfTwo)))) {
        const auto gap = hn::Combine(Eight{}, in_two(high), in_two(low));
        const auto is_long = hn::Gt(gap, seven);
        const auto first = hn::Or(hn::And(gap, seven), hn::IfThenElseZero(is_long, more));
        const auto second = hn::ShiftLeft<8>(hn::ShiftRight<7>(gap));
        std::uint8_t bits[8];  // as many as may be written
        hn::StoreMaskBits(Eight{}, is_long, bits);
        hn::StoreU(looked_up(hn::Or(first, second), gaps::kTogether[bits[0]]), Bytes{},
                   reinterpret_cast<std::uint8_t*>(to));
        to += kAtOnce + static_cast<std::size_t>(std::popcount(bits[0]));
        i += kAtOnce;
        continue;
      }
    }
    to = gaps::put(from[i] - from[i - 1] - 1, to);
    ++i;
  }
  return to;
}

// All gaps that end in eight bytes. They are told apart beside the way from one place to the next,
// which only asks whether the last byte begins a gap that ends later.
std::size_t take_vectors(GapPlace& place, const std::byte* end, std::uint64_t limit,
                         std::span<std::uint32_t> room) {
  static_assert(std::endian::native == std::endian::little, "the first byte is the lowest");
  constexpr std::uint64_t kMores = 0x8080'8080'8080'8080U;
  constexpr std::uint64_t kGather = 0x0102'0408'1020'4080U;  // a bit of each byte into the highest
  const auto* at = place.at;
  auto index = place.index;
  const auto one_up = hn::Iota(Four{}, 1), five_up = hn::Iota(Four{}, 5);
  std::size_t found = 0;
  while (room.size() - found >= kAtOnce && static_cast<std::size_t>(end - at) >= kAtOnce) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    const auto mores = (word & kMores) >> 7;
    if ((mores & mores >> 8) != 0) break;  // three bytes
    const auto more = mores * kGather >> 56;
    const std::size_t bytes = kAtOnce - (more >> 7);
    const auto count = bytes - static_cast<std::size_t>(std::popcount(more & 0x7F));
    const auto pairs = hn::BitCast(
        Eight{}, looked_up(hn::Set(hn::FixedTag<std::uint64_t, 2>{}, word), gaps::kApart[more]));
    auto sums = hn::Or(hn::And(pairs, hn::Set(Eight{}, gaps::kSeven)),
                       hn::And(hn::ShiftRight<1>(pairs), hn::Set(Eight{}, 0x3F80)));
    // Eight bytes hold no more than four long gaps, so that all together fit 16 bits.
    sums = hn::Add(sums, hn::ShiftLeftLanes<1>(Eight{}, sums));
    sums = hn::Add(sums, hn::ShiftLeftLanes<2>(Eight{}, sums));
    sums = hn::Add(sums, hn::ShiftLeftLanes<4>(Eight{}, sums));
    // Behind the last gap sums stay what they are.
    const auto passed = std::uint64_t{hn::ExtractLane(sums, kAtOnce - 1)} + count;
    if (index + passed >= limit) break;
    const auto from = hn::Set(Four{}, static_cast<std::uint32_t>(index));
    const hn::Half<Eight> half;
    hn::StoreU(hn::Add(hn::Add(from, one_up), hn::PromoteTo(Four{}, hn::LowerHalf(half, sums))),
               Four{}, room.data() + found);
    hn::StoreU(hn::Add(hn::Add(from, five_up), hn::PromoteTo(Four{}, hn::UpperHalf(half, sums))),
               Four{}, room.data() + found + kAtOnce / 2);
    index += passed;
    at += bytes;
    found += count;
  }
  place = {at, index};
  return found;
}

#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace sinew
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinew {

HWY_EXPORT(put_vectors);
HWY_EXPORT(take_vectors);

std::byte* put_gaps(std::span<const std::uint32_t> indices, std::uint32_t base,
                    std::byte* to) noexcept {
  return HWY_DYNAMIC_DISPATCH(put_vectors)(indices, base, to);
}

std::size_t take_gaps(GapPlace& place, const std::byte* end, std::uint64_t limit,
                      std::span<std::uint32_t> room) noexcept {
  return HWY_DYNAMIC_DISPATCH(take_vectors)(place, end, limit, room);
}

std::byte* put_gaps_scalar(std::span<const std::uint32_t> indices, std::uint32_t base,
                           std::byte* to) noexcept {
  for (const auto index : indices) {
    to = gaps::put(index - base, to);
    base = index + 1;
  }
  return to;
}

}  // namespace sinew
#endif
