// Selection by magnitude at memory speed: accumulate + threshold + compaction in one pass,
// histograms of magnitudes, and the exact k-th magnitude.
//
// A magnitude is an element's bits without the sign, compared as an integer: the order of absolute
// values, with infinity above all numbers and NaN above infinity. So neither can hide.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sinew {

using Magnitude = std::uint32_t;
inline constexpr Magnitude kInfinity = 0x7F80'0000;   // this and above: not finite
inline constexpr Magnitude kSmallest = 1;             // the first that is not zero
inline constexpr Magnitude kUnreached = 0x8000'0000;  // above all there are

inline Magnitude magnitude(float value) noexcept {
  return std::bit_cast<std::uint32_t>(value) & 0x7FFF'FFFFU;
}

/// A histogram of magnitudes: in bin b those whose (magnitude - from) >> shift is b, larger ones in
/// the last.
struct Histogram {
  std::span<std::uint32_t> bins;  // empty: nobody asks
  Magnitude from = 0;
  int shift = 0;
  void count(Magnitude magnitude) const noexcept {
    ++bins[std::min<std::size_t>((magnitude - from) >> shift, bins.size() - 1)];
  }
};

/// Where selected elements go: ascending indices, and their values. Both have room for
/// `capacity` + kSelectSlack. Those that do not fit are not in the histogram, either; it does not
/// begin above the least that is selected.
struct ItemRoom {
  std::uint32_t* indices = nullptr;
  float* values = nullptr;
  std::size_t capacity = 0;
  Histogram histogram = {};
};
/// Loops look for room once a block, and store whole vectors.
inline constexpr std::size_t kSelectSlack = 2048 + 64;

/// One element. Beyond the capacity only the number counts.
inline void append_if(float value, std::size_t index, Magnitude floor, ItemRoom room,
                      std::size_t& count) noexcept {
  if (magnitude(value) < floor) return;
  if (count < room.capacity) {
    room.indices[count] = static_cast<std::uint32_t>(index);
    room.values[count] = value;
    if (!room.histogram.bins.empty()) room.histogram.count(magnitude(value));
  }
  ++count;
}

/// What earlier steps left. Elements whose bit in `gone` is set count as 0: on the way through that
/// costs nothing, while to write each 0 costs a cache miss.
struct Kept {
  std::span<const float> values;
  std::span<const std::uint64_t> gone = {};  // empty: all count
  [[nodiscard]] float operator[](std::size_t i) const noexcept {
    const bool is_gone = !gone.empty() && (gone[i / 64] >> i % 64 & 1) != 0;
    return is_gone ? 0.0F : values[i];
  }
};

/// sum = gradient + kept, and every element of the sum of at least `floor` goes into `room`.
/// Returns how many there are: if more than the capacity, the items are not complete, but the sum
/// is. `sum` may be `kept`. `streaming`: the sum will not be read soon.
std::size_t accumulate_select(std::span<const float> gradient, Kept kept, std::span<float> sum,
                              Magnitude floor, ItemRoom room, bool streaming) noexcept;
/// The same without a sum: elements of `values` of at least `floor`.
std::size_t select(std::span<const float> values, Magnitude floor, ItemRoom room) noexcept;
/// And those of at least `taken`, which is not below `floor`, become 0 as soon as they are items,
/// while they are in the nearest cache: all of them, if there are not more items than the capacity.
/// If there are more, all that have become 0 are among so many items.
std::size_t select_taking(std::span<float> values, Magnitude floor, Magnitude taken,
                          ItemRoom room) noexcept;

/// Of the first `count` items in `room` those of at least `floor` stay, in order. Returns how many.
std::size_t keep_items(ItemRoom room, std::size_t count, Magnitude floor) noexcept;

/// Elements with a magnitude of `low` or more, but less than `low + width`, in order. `to` has room
/// for all of them and kBetweenSlack, and may be where `values` begin. Returns how many.
std::size_t take_between(std::span<const float> values, Magnitude low, Magnitude width,
                         float* to) noexcept;
inline constexpr std::size_t kBetweenSlack = 64;  // whole vectors are stored

bool all_finite(std::span<const float> values) noexcept;

/// The same loops, plain C++, one element at a time: what the SIMD ones are tested against.
std::size_t accumulate_select_scalar(std::span<const float> gradient, std::span<const float> kept,
                                     std::span<float> sum, Magnitude floor, ItemRoom room) noexcept;
std::size_t select_scalar(std::span<const float> values, Magnitude floor, ItemRoom room) noexcept;
std::size_t take_between_scalar(std::span<const float> values, Magnitude low, Magnitude width,
                                float* to) noexcept;

/// counts[b] += how many elements have (magnitude - from) >> shift equal to b. Smaller ones are
/// left out; larger ones count in the last bin.
void count_magnitudes(std::span<const float> values, Magnitude from, int shift,
                      std::span<std::uint32_t> counts) noexcept;

}  // namespace sinew
