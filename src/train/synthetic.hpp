// Data made from a seed: the same everywhere, and nothing to install.
#pragma once

#include <cstdint>

#include "train/dataset.hpp"

namespace sinew {

/// Images of 28 x 28: one of ten smooth patterns, moved a little, under noise.
Data make_patterns(std::size_t samples, std::uint64_t seed);
/// Rows of ten normal numbers; the label is their sum modulo ten, without its fraction.
Data make_rows(std::size_t samples, std::uint64_t seed);

/// Normal with mean 0 and deviation 1, one for every (key, counter).
float random_normal(std::uint64_t key, std::uint64_t counter) noexcept;

}  // namespace sinew
