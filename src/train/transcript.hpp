// From scores of frames to labels, and how far labels are from the right ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sinew {

/// The best label of each frame, repeats and blanks (0) taken out, as CTC means it.
std::vector<std::int64_t> collapse(std::span<const std::int64_t> best_of_frames);
/// Insertions, deletions and changes that make one out of the other.
std::uint64_t edit_distance(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

}  // namespace sinew
