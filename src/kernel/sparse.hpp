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

/// vector[i] = the item's value / divisor at each index, 0 elsewhere. Every index lies in the
/// vector.
void write_sparse(std::span<float> vector, SparseItems items, float divisor) noexcept;

/// Elements of a block of sums, and one bit for each that was written.
struct TouchedBlock {
  static constexpr std::size_t kElements = 8192, kGroup = 16, kGroups = kElements / kGroup;
  alignas(64) float sums[kElements] = {};
  alignas(64) std::uint16_t touched[kGroups] = {};
  void add(std::size_t at, float value) noexcept {
    sums[at] += value;
    touched[at / kGroup] = static_cast<std::uint16_t>(touched[at / kGroup] | 1U << at % kGroup);
  }
};
/// Moves what was touched into `room` from item `count` on, with `first` as the index of the
/// block's first element, and leaves the block all zero. Returns the new count; the room has to
/// suffice, with kSelectSlack beyond.
std::size_t take_touched(TouchedBlock& block, std::uint32_t first, ItemRoom room,
                         std::size_t count) noexcept;

/// The same, plain C++, one element at a time: what the SIMD ones are tested against.
void write_sparse_scalar(std::span<float> vector, SparseItems items, float divisor) noexcept;
std::size_t take_touched_scalar(TouchedBlock& block, std::uint32_t first, ItemRoom room,
                                std::size_t count) noexcept;

}  // namespace sinew
