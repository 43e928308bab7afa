// Arithmetic on ranks that several generators share.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include <sinew/algorithms.hpp>

namespace sinew {

/// A rank or chunk number brought into 0..size-1.
inline int wrap(int value, int size) { return ((value % size) + size) % size; }
inline std::uint32_t wrap_chunk(int value, int size) {
  return static_cast<std::uint32_t>(wrap(value, size));
}
inline std::uint32_t u32(int value) { return static_cast<std::uint32_t>(value); }

/// Rounds that doubling needs to reach `size`: ceil(log2(size)).
inline int log2_ceil(int size) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(size - 1)));
}
inline int floor_power_of_two(int size) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
}
inline bool is_power_of_two(int size) { return std::has_single_bit(static_cast<unsigned>(size)); }

/// A rank count cut down to a power of two: of the first 2 * extra ranks, even ones hand their data
/// to the next odd one and wait for the result. `index` is the place among those who stay.
struct Fold {
  int kept;   // the power of two
  int extra;  // ranks too many
  int index;  // -1: this rank hands over
  explicit Fold(int rank, int size)
      : kept(floor_power_of_two(size)),
        extra(size - kept),
        index(rank >= 2 * extra ? rank - extra
              : rank % 2 == 1   ? rank / 2
                                : -1) {}
  [[nodiscard]] int rank_at(int at) const { return at < extra ? 2 * at + 1 : at + extra; }
};

/// Memory domains: ranks of each, ascending, ordered by their first rank (the leader).
std::vector<std::vector<int>> nodes_of(const Place& place);

}  // namespace sinew
