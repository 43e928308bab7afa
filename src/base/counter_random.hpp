// Randomness without state: a number for every (key, counter), the same wherever it is asked for.
// Ranks that share a key share the numbers, and nothing has to travel.
#pragma once

#include <cstdint>

namespace sinew {

/// 64 well-mixed bits.
constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t counter) noexcept {
  std::uint64_t x = key + counter * 0x9E3779B97F4A7C15U;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9U;
  x = (x ^ x >> 27) * 0x94D049BB133111EBU;
  return x ^ x >> 31;
}

/// In [0, 1), a multiple of 2^-24.
constexpr float random_unit(std::uint64_t key, std::uint64_t counter) noexcept {
  return static_cast<float>(random_bits(key, counter) >> 40) * 0x1p-24F;
}

/// One key out of several numbers.
constexpr std::uint64_t random_key(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) noexcept {
  return random_bits(random_bits(random_bits(0x5851F42D4C957F2DU, a), b), c);
}

/// A permutation of 0 .. elements - 1, one element at a time: its first k values are k distinct
/// random ones, at the cost of k.
class Permutation {
 public:
  Permutation(std::uint32_t elements, std::uint64_t key) noexcept : elements_(elements), key_(key) {
    while (std::uint64_t{rows_} * rows_ < elements) ++rows_;
    columns_ = static_cast<std::uint32_t>((std::uint64_t{elements} + rows_ - 1) / rows_);
  }
  /// `at` is less than `elements`.
  [[nodiscard]] std::uint32_t operator()(std::uint32_t at) const noexcept {
    // The grid is a little larger than the range; who lands outside walks on until inside.
    std::uint64_t place = at;
    do place = permute_grid(place);
    while (place >= elements_);
    return static_cast<std::uint32_t>(place);
  }

 private:
  // Rounds that each add to one coordinate a number made of the other: every one can be undone, so
  // that no two places end in the same one.
  [[nodiscard]] std::uint64_t permute_grid(std::uint64_t place) const noexcept {
    auto row = static_cast<std::uint32_t>(place / columns_);
    auto column = static_cast<std::uint32_t>(place % columns_);
    for (std::uint64_t round = 0; round < 6; round += 2) {
      row = add_modulo(row, random_bits(key_ + round, column), rows_);
      column = add_modulo(column, random_bits(key_ + round + 1, row), columns_);
    }
    return std::uint64_t{row} * columns_ + column;
  }
  static std::uint32_t add_modulo(std::uint32_t a, std::uint64_t bits, std::uint32_t limit) {
    const auto sum = a + ((bits >> 32) * limit >> 32);
    return static_cast<std::uint32_t>(sum >= limit ? sum - limit : sum);
  }

  std::uint32_t elements_;
  std::uint64_t key_;
  std::uint32_t rows_ = 1, columns_ = 1;
};

}  // namespace sinew
