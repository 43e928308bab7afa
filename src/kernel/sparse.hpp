// Between sparse lists and dense vectors, at memory speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/select.hpp"

namespace sinew {

/// Indices ascend.
struct SparseItems {
  std::span<const std::uint32_t> indices;
  std::span<const float> values;
};

/// Other indices, which ascend, and words for the answer to which of them are items' too: bit
/// i % 64 of word i / 64. All words are written; none: nobody asks.
struct Common {
  std::span<const std::uint32_t> indices;
  std::span<std::uint64_t> bits;
};
/// vector[i] = the item's value / divisor at each index, 0 elsewhere; a zero has no sign. Every
/// index lies in the vector. The answer costs little while memory takes in the vector.
void write_sparse(std::span<float> vector, SparseItems items, float divisor,
                  Common asked = {}) noexcept;

/// Sums, coordinate by coordinate and in the order of the lists, from zero on. `room` has room for
/// all items; the lists are empty afterwards. Returns how many coordinates occur.
std::size_t add_sparse(std::span<SparseItems> lists, ItemRoom room) noexcept;

/// The same, plain C++, one element at a time: what the SIMD ones are tested against.
void write_sparse_scalar(std::span<float> vector, SparseItems items, float divisor,
                         Common asked = {}) noexcept;
std::size_t add_sparse_scalar(std::span<SparseItems> lists, ItemRoom room) noexcept;

}  // namespace sinew
