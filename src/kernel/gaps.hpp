// Ascending indices as the gaps between them: how many elements are left out before each, as 1 to 5
// bytes of 7 bits, the lowest first; the highest bit of a byte says that another follows.
//
// Whether a gap takes one byte or two cannot be predicted, so nothing branches on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sinew {

inline constexpr std::size_t kMostGapBytes = 5;

/// The first gap counts from `base`. `to` has room for the most bytes there can be. Returns the
/// end.
std::byte* put_gaps(std::span<const std::uint32_t> indices, std::uint32_t base,
                    std::byte* to) noexcept;

/// A place between two gaps, and the index before it.
struct GapPlace {
  const std::byte* at;
  std::uint64_t index;
};
/// The indices of many gaps, at most as many as there is room for, and of those that lie before
/// `limit`. It stops before `end`, before a gap of three bytes and when it likes: who wants all
/// reads some one by one. Returns how many, and moves `place` behind them; what is in the room
/// beyond them has no meaning.
std::size_t take_gaps(GapPlace& place, const std::byte* end, std::uint64_t limit,
                      std::span<std::uint32_t> room) noexcept;

/// The same, plain C++: what the SIMD one is tested against.
std::byte* put_gaps_scalar(std::span<const std::uint32_t> indices, std::uint32_t base,
                           std::byte* to) noexcept;

}  // namespace sinew
