// Regions of the gradient, one for each rank to add up: cut so that every region gets about as many
// items, wherever they lie.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sinew {

/// Coordinates of a rank's items at even steps of its list.
inline constexpr std::size_t kQuantiles = 128;

/// kQuantiles + 1 words: how many items, then the coordinates.
void put_quantiles(std::span<const std::uint32_t> indices, std::span<std::uint64_t> words);

/// From everybody's words to size + 1 boundaries, the first 0 and the last `elements`. Region i is
/// [boundaries[i], boundaries[i + 1]); it may be empty. All in 64 bits: no rank count overflows.
std::vector<std::uint64_t> balanced_regions(std::span<const std::uint64_t> words, int size,
                                            std::uint64_t elements);

/// Regions of equal width.
std::vector<std::uint64_t> equal_regions(int size, std::uint64_t elements);

}  // namespace sinew
