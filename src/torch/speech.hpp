// Models of sequences: convolutions over a spectrogram, recurrent layers, a score for each letter
// in each frame (the architecture of DeepSpeech 2 without its second direction).
#pragma once

#include <memory>

#include "torch/net.hpp"

namespace sinew {

struct SpeechShape {
  std::int64_t channels = 32, hidden = 800, layers = 5;
};
inline constexpr std::int64_t kSpeechLabels = 29;  // blank, apostrophe, A to Z, space

std::unique_ptr<Net> make_speech_net(std::uint64_t seed, const SpeechShape& shape);
/// Frames of the scores for so many frames of input.
constexpr std::int64_t speech_frames(std::int64_t input_frames) {
  return (input_frames - 1) / 2 + 1;
}

}  // namespace sinew
