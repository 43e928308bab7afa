#include "kernel/select.hpp"

#include "kernel/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/select.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h: these are compiled for every target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace sinew {
namespace HWY_NAMESPACE {

// Each does whole vectors and returns the number of elements done; the caller does the rest.

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

std::size_t accumulate_select_vectors(const float*, Kept, float*, Magnitude, ItemRoom, bool,
                                      std::size_t&) {
  return 0;
}
std::size_t select_vectors(const float*, std::size_t, Magnitude, ItemRoom, std::size_t&) {
  return 0;
}
std::size_t select_taking_vectors(std::span<float>, Magnitude, Magnitude, ItemRoom, std::size_t&) {
  return 0;
}
std::size_t keep_vectors(ItemRoom, std::size_t, Magnitude, std::size_t&) { return 0; }
std::size_t between_vectors(std::span<const float>, Magnitude, Magnitude, float*, std::size_t&) {
  return 0;
}
std::size_t finite_vectors(const float*, std::size_t, bool&) { return 0; }

#else

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kBlock = 2048;  // elements between two looks at the room
static_assert(kBlock + 64 == kSelectSlack);

using F = hn::CappedTag<float, 16>;  // so that the masks of a group fit 64 bits
using U = hn::RebindToUnsigned<F>;
using I = hn::RebindToSigned<F>;

// Magnitudes have no sign bit, so that signed comparison, which every target has, orders them.
template <class V>
HWY_INLINE auto magnitudes(V values) {
  return hn::And(hn::BitCast(I{}, values), hn::Set(I{}, 0x7FFF'FFFF));
}

constexpr std::size_t kGroup = 4;
// Most groups of vectors have no more selected elements than this.
constexpr int kFew = 6;

/// Returns the new count.
template <class V, class M>
HWY_INLINE std::size_t append(V values, M chosen, std::size_t index, ItemRoom room,
                              std::size_t count) {
  const auto first = hn::Set(I{}, static_cast<std::int32_t>(static_cast<std::uint32_t>(index)));
  const auto at = hn::Add(hn::Iota(I{}, 0), first);
  hn::StoreU(hn::Compress(values, hn::RebindMask(F{}, chosen)), F{}, room.values + count);
  hn::StoreU(hn::BitCast(U{}, hn::Compress(at, chosen)), U{}, room.indices + count);
  return count + hn::CountTrue(I{}, chosen);
}

template <class M>
HWY_INLINE std::uint64_t bits_of(M mask) {
  std::uint64_t bits = 0;
  hn::StoreMaskBits(I{}, mask, reinterpret_cast<std::uint8_t*>(&bits));
  return bits;
}

/// In two loops: the first is one of vectors.
HWY_NOINLINE void count_items(Histogram histogram, const float* values, std::size_t items) {
  const auto from = hn::Set(I{}, static_cast<std::int32_t>(histogram.from));
  const auto last = hn::Set(I{}, static_cast<std::int32_t>(histogram.bins.size() - 1));
  std::int32_t bins[kSelectSlack];
  for (std::size_t i = 0; i < items; i += hn::Lanes(I{})) {
    const auto above = hn::Sub(magnitudes(hn::LoadU(F{}, values + i)), from);
    hn::StoreU(hn::Min(hn::ShiftRightSame(above, histogram.shift), last), I{}, bins + i);
  }
  for (std::size_t i = 0; i < items; ++i) ++histogram.bins[static_cast<std::size_t>(bins[i])];
}

/// `load` gives a vector, `at` one element of it again; `after` is told which items a block gave,
/// if all of them are there. A group's few elements are stored one by
/// one and always as many, those that were not selected to be overwritten by the next: neither a
/// branch for each, which would be mispredicted too often, nor a vector for each.
template <class Load, class At, class After>
HWY_INLINE std::size_t select_blocks(std::size_t elements, Magnitude least, ItemRoom room,
                                     std::size_t& found, Load load, At at, After after) {
  // A copy: for all the compiler knows, storing an item could change what is behind a reference.
  std::size_t count = found;
  const std::size_t lanes = hn::Lanes(F{}), group = kGroup * lanes;
  const auto below = hn::Set(I{}, static_cast<std::int32_t>(least) - 1);
  const std::size_t whole = elements / group * group;
  for (std::size_t begin = 0; begin < whole; begin += kBlock) {
    const std::size_t end = std::min(whole, begin + kBlock);
    const bool has_room = count <= room.capacity;  // otherwise they are only counted
    const auto before = count;
    for (std::size_t i = begin; i < end; i += group) {
      const auto v0 = load(i), v1 = load(i + lanes);
      const auto v2 = load(i + 2 * lanes), v3 = load(i + 3 * lanes);
      const auto m0 = hn::Gt(magnitudes(v0), below), m1 = hn::Gt(magnitudes(v1), below);
      const auto m2 = hn::Gt(magnitudes(v2), below), m3 = hn::Gt(magnitudes(v3), below);
      auto bits =
          bits_of(m0) | bits_of(m1) << lanes | bits_of(m2) << 2 * lanes | bits_of(m3) << 3 * lanes;
      const int selected = std::popcount(bits);
      if (!has_room) {
        count += static_cast<std::size_t>(selected);
      } else if (selected <= kFew) {
        for (int k = 0; k < kFew; ++k, bits &= bits - 1) {
          const auto index = i + static_cast<std::size_t>(std::countr_zero(bits)) % group;
          room.indices[count + static_cast<std::size_t>(k)] = static_cast<std::uint32_t>(index);
          room.values[count + static_cast<std::size_t>(k)] = at(index);
        }
        count += static_cast<std::size_t>(selected);
      } else {
        count = append(v0, m0, i, room, count);
        count = append(v1, m1, i + lanes, room, count);
        count = append(v2, m2, i + 2 * lanes, room, count);
        count = append(v3, m3, i + 3 * lanes, room, count);
      }
    }
    if (count > room.capacity) continue;
    if (!room.histogram.bins.empty())
      count_items(room.histogram, room.values + before, count - before);
    after(before, count);
  }
  found = count;
  return whole;
}

constexpr auto leave = [](std::size_t, std::size_t) {};

// `load_kept` loads a vector of what was kept.
template <class LoadKept>
HWY_INLINE std::size_t accumulate_blocks(const float* gradient, Kept kept, LoadKept load_kept,
                                         float* sum, std::size_t elements, Magnitude floor,
                                         ItemRoom room, bool streaming, std::size_t& count) {
  const F d;
  const auto add = [=](std::size_t i) { return hn::Add(hn::LoadU(d, gradient + i), load_kept(i)); };
  const bool aligned = reinterpret_cast<std::uintptr_t>(sum) % (hn::Lanes(d) * sizeof(float)) == 0;
  if (!streaming || !aligned || sum == kept.values.data())
    return select_blocks(
        elements, floor, room, count,
        [=](std::size_t i) {
          const auto v = add(i);
          hn::StoreU(v, d, sum + i);
          return v;
        },
        [=](std::size_t i) { return sum[i]; }, leave);
  const auto done = select_blocks(
      elements, floor, room, count,
      [=](std::size_t i) {
        const auto v = add(i);
        hn::Stream(v, d, sum + i);
        return v;
      },
      // The sum is no longer in any cache, its terms are.
      [=](std::size_t i) { return gradient[i] + kept[i]; }, leave);
  hwy::FlushStream();
  return done;
}

std::size_t accumulate_select_vectors(const float* gradient, Kept kept, float* sum, Magnitude floor,
                                      ItemRoom room, bool streaming, std::size_t& count) {
  const float* const values = kept.values.data();
  const auto elements = kept.values.size();
  if (kept.gone.empty())
    return accumulate_blocks(
        gradient, kept, [=](std::size_t i) { return hn::LoadU(F{}, values + i); }, sum, elements,
        floor, room, streaming, count);
  // Masks are loaded eight bytes at a time: the last word is left to the caller.
  const auto* const gone = reinterpret_cast<const std::uint8_t*>(kept.gone.data());
  const auto load = [=](std::size_t i) {
    // Fewer than eight lanes begin in the middle of a byte.
    const std::uint64_t narrow = gone[i / 8] >> i % 8;
    const auto* const bits =
        hn::Lanes(F{}) < 8 ? reinterpret_cast<const std::uint8_t*>(&narrow) : gone + i / 8;
    return hn::IfThenZeroElse(hn::LoadMaskBits(F{}, bits), hn::LoadU(F{}, values + i));
  };
  const auto all_but_last = elements < 64 ? 0 : (elements / 64 - 1) * 64;
  return accumulate_blocks(gradient, kept, load, sum, all_but_last, floor, room, streaming, count);
}

std::size_t select_vectors(const float* values, std::size_t elements, Magnitude floor,
                           ItemRoom room, std::size_t& count) {
  return select_blocks(
      elements, floor, room, count, [=](std::size_t i) { return hn::LoadU(F{}, values + i); },
      [=](std::size_t i) { return values[i]; }, leave);
}

std::size_t select_taking_vectors(std::span<float> values, Magnitude floor, Magnitude taken,
                                  ItemRoom room, std::size_t& count) {
  float* const all = values.data();
  const std::size_t lanes = hn::Lanes(F{});
  const auto below = hn::Set(I{}, static_cast<std::int32_t>(taken) - 1);
  std::uint32_t places[kSelectSlack];
  const auto take = [&](std::size_t first, std::size_t last) {
    std::size_t found = 0;
    for (std::size_t i = first; i < last; i += lanes) {
      const auto large = hn::And(hn::Gt(magnitudes(hn::LoadU(F{}, room.values + i)), below),
                                 hn::FirstN(I{}, last - i));
      const auto indices = hn::LoadU(U{}, room.indices + i);
      hn::StoreU(hn::Compress(indices, hn::RebindMask(U{}, large)), U{}, places + found);
      found += hn::CountTrue(I{}, large);
    }
    for (std::size_t i = 0; i < found; ++i) all[places[i]] = 0;
  };
  return select_blocks(
      values.size(), floor, room, count, [=](std::size_t i) { return hn::LoadU(F{}, all + i); },
      [=](std::size_t i) { return all[i]; }, take);
}

// What is written never lies ahead of what has been read.
std::size_t keep_vectors(ItemRoom room, std::size_t count, Magnitude floor, std::size_t& kept) {
  const std::size_t lanes = hn::Lanes(F{});
  const auto below = hn::Set(I{}, static_cast<std::int32_t>(floor) - 1);
  std::size_t stay = 0, i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto values = hn::LoadU(F{}, room.values + i);
    const auto indices = hn::LoadU(U{}, room.indices + i);
    const auto chosen = hn::Gt(magnitudes(values), below);
    hn::StoreU(hn::Compress(values, hn::RebindMask(F{}, chosen)), F{}, room.values + stay);
    hn::StoreU(hn::Compress(indices, hn::RebindMask(U{}, chosen)), U{}, room.indices + stay);
    stay += hn::CountTrue(I{}, chosen);
  }
  kept = stay;
  return i;
}

// Few are, so that most groups of vectors are only looked at.
std::size_t between_vectors(std::span<const float> values, Magnitude low, Magnitude width,
                            float* to, std::size_t& found) {
  const std::size_t lanes = hn::Lanes(F{}), group = kGroup * lanes;
  const auto from = hn::Set(U{}, low), less = hn::Set(U{}, width);
  const auto load = [&](std::size_t i) { return hn::LoadU(F{}, values.data() + i); };
  const auto inside = [&](auto value) {
    return hn::Lt(hn::Sub(hn::BitCast(U{}, magnitudes(value)), from), less);
  };
  std::size_t count = 0, i = 0;
  for (; i + group <= values.size(); i += group) {
    const auto v0 = load(i), v1 = load(i + lanes);
    const auto v2 = load(i + 2 * lanes), v3 = load(i + 3 * lanes);
    const auto m0 = inside(v0), m1 = inside(v1), m2 = inside(v2), m3 = inside(v3);
    if (hn::AllFalse(U{}, hn::Or(hn::Or(m0, m1), hn::Or(m2, m3)))) continue;
    const auto put = [&](auto value, auto chosen) {
      hn::StoreU(hn::Compress(value, hn::RebindMask(F{}, chosen)), F{}, to + count);
      count += hn::CountTrue(U{}, chosen);
    };
    put(v0, m0);
    put(v1, m1);
    put(v2, m2);
    put(v3, m3);
  }
  found = count;
  return i;
}

std::size_t finite_vectors(const float* values, std::size_t elements, bool& finite) {
  const std::size_t lanes = hn::Lanes(F{});
  auto largest = hn::Zero(I{});
  std::size_t i = 0;
  for (; i + lanes <= elements; i += lanes)
    largest = hn::Max(largest, magnitudes(hn::LoadU(F{}, values + i)));
  const auto numbers = hn::Set(I{}, static_cast<std::int32_t>(kInfinity) - 1);
  finite = hn::AllFalse(I{}, hn::Gt(largest, numbers));
  return i;
}

#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace sinew
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinew {

HWY_EXPORT(accumulate_select_vectors);
HWY_EXPORT(select_vectors);
HWY_EXPORT(select_taking_vectors);
HWY_EXPORT(keep_vectors);
HWY_EXPORT(between_vectors);
HWY_EXPORT(finite_vectors);

std::size_t accumulate_select(std::span<const float> gradient, Kept kept, std::span<float> sum,
                              Magnitude floor, ItemRoom room, bool streaming) noexcept {
  std::size_t count = 0;
  std::size_t i = HWY_DYNAMIC_DISPATCH(accumulate_select_vectors)(gradient.data(), kept, sum.data(),
                                                                  floor, room, streaming, count);
  for (; i < gradient.size(); ++i) {
    sum[i] = gradient[i] + kept[i];
    append_if(sum[i], i, floor, room, count);
  }
  return count;
}

std::size_t select(std::span<const float> values, Magnitude floor, ItemRoom room) noexcept {
  std::size_t count = 0;
  std::size_t i =
      HWY_DYNAMIC_DISPATCH(select_vectors)(values.data(), values.size(), floor, room, count);
  for (; i < values.size(); ++i) append_if(values[i], i, floor, room, count);
  return count;
}

std::size_t select_taking(std::span<float> values, Magnitude floor, Magnitude taken,
                          ItemRoom room) noexcept {
  std::size_t count = 0;
  std::size_t i = HWY_DYNAMIC_DISPATCH(select_taking_vectors)(values, floor, taken, room, count);
  for (; i < values.size(); ++i) {
    append_if(values[i], i, floor, room, count);
    if (magnitude(values[i]) >= taken && count <= room.capacity) values[i] = 0;
  }
  return count;
}

std::size_t keep_items(ItemRoom room, std::size_t count, Magnitude floor) noexcept {
  std::size_t kept = 0;
  std::size_t i = HWY_DYNAMIC_DISPATCH(keep_vectors)(room, count, floor, kept);
  for (; i < count; ++i) {
    room.indices[kept] = room.indices[i];
    room.values[kept] = room.values[i];
    kept += magnitude(room.values[i]) >= floor ? 1 : 0;
  }
  return kept;
}

std::size_t take_between(std::span<const float> values, Magnitude low, Magnitude width,
                         float* to) noexcept {
  std::size_t count = 0;
  const auto done = HWY_DYNAMIC_DISPATCH(between_vectors)(values, low, width, to, count);
  return count + take_between_scalar(values.subspan(done), low, width, to + count);
}

bool all_finite(std::span<const float> values) noexcept {
  bool finite = true;
  std::size_t i = HWY_DYNAMIC_DISPATCH(finite_vectors)(values.data(), values.size(), finite);
  for (; i < values.size(); ++i) finite &= magnitude(values[i]) < kInfinity;
  return finite;
}

void count_magnitudes(std::span<const float> values, Magnitude from, int shift,
                      std::span<std::uint32_t> counts) noexcept {
  const auto last = static_cast<std::uint32_t>(counts.size() - 1);
  const auto count = [=](float value, std::uint32_t* into) {
    const auto above = magnitude(value) - from;
    // Below `from` the difference wraps round and has its highest bit set.
    if (static_cast<std::int32_t>(above) >= 0) ++into[std::min(above >> shift, last)];
  };
  // Most fall into a few bins, and a bin that was just counted is counted again only after its
  // store: so neighbours have counts of their own.
  constexpr std::size_t kMostBins = 4097, kApart = 4;
  const bool pays = values.size() >= 2 * kApart * counts.size() && counts.size() <= kMostBins;
  const std::size_t whole = pays ? values.size() / kApart * kApart : 0;
  if (whole > 0) {
    std::uint32_t others[kApart - 1][kMostBins];
    for (auto& other : others) std::fill_n(other, counts.size(), 0);
    for (std::size_t i = 0; i < whole; i += kApart) {
      count(values[i], counts.data());
      for (std::size_t k = 1; k < kApart; ++k) count(values[i + k], others[k - 1]);
    }
    for (std::size_t bin = 0; bin < counts.size(); ++bin)
      for (const auto& other : others) counts[bin] += other[bin];
  }
  for (const float value : values.subspan(whole)) count(value, counts.data());
}

}  // namespace sinew
#endif
