// Spelled words as pictures of sound, made from a seed: every letter is a pattern of a few
// frequencies that lasts a while. For models of sequences, where no speech is at hand.
#pragma once

#include <cstdint>

#include "train/dataset.hpp"

namespace sinew {

/// Three to eight of 28 letters each, 161 frequencies, under noise.
Data make_tones(std::size_t samples, std::uint64_t seed);

}  // namespace sinew
