// Sound as a picture: how much of each frequency there is, frame by frame.
#pragma once

#include <span>
#include <vector>

namespace sinew {

inline constexpr int kSpeechRate = 16000;    // samples a second
inline constexpr std::size_t kBins = 161;    // frequencies, 0 to 8 kHz
inline constexpr std::size_t kWindow = 320;  // samples of a frame: 20 ms, Hamming
inline constexpr std::size_t kStride = 160;  // samples between frames: 10 ms

constexpr std::size_t spectrogram_frames(std::size_t samples) noexcept {
  return samples < kWindow ? 1 : 1 + (samples - kWindow) / kStride;
}

class Spectrogram {
 public:
  Spectrogram();
  /// log(1 + magnitude), then shifted and scaled to mean 0 and variance 1 over the picture. Row
  /// `bin` begins at image[bin * row]; only its first spectrogram_frames() are written.
  void draw(std::span<const float> samples, std::span<float> image, std::size_t row) const;

 private:
  std::vector<float> window_, cosines_, sines_;  // the last two: half a window x bin
};

}  // namespace sinew
