#include "train/spectrogram.hpp"

#include <array>
#include <cmath>
#include <numbers>

namespace sinew {
namespace {

constexpr std::size_t kHalf = kWindow / 2;
static_assert(kBins == kHalf + 1);

}  // namespace

Spectrogram::Spectrogram() : window_(kWindow), cosines_(kBins * kHalf), sines_(kBins * kHalf) {
  const auto turn = 2 * std::numbers::pi / kWindow;
  for (std::size_t i = 0; i < kWindow; ++i)
    window_[i] = static_cast<float>(
        0.54 - 0.46 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / (kWindow - 1)));
  for (std::size_t bin = 0; bin < kBins; ++bin)
    for (std::size_t i = 0; i < kHalf; ++i) {
      const double angle = turn * static_cast<double>(bin * i % kWindow);
      cosines_[i * kBins + bin] = static_cast<float>(std::cos(angle));
      sines_[i * kBins + bin] = static_cast<float>(std::sin(angle));
    }
}

void Spectrogram::draw(std::span<const float> samples, std::span<float> image,
                       std::size_t row) const {
  const auto frames = spectrogram_frames(samples.size());
  std::array<float, kWindow> frame{};
  std::array<float, kHalf> even{}, odd{};
  std::array<float, kBins> real{}, imaginary{};
  double sum = 0, squares = 0;
  for (std::size_t at = 0; at < frames; ++at) {
    for (std::size_t i = 0; i < kWindow; ++i) {
      const auto sample = at * kStride + i;
      frame[i] = sample < samples.size() ? samples[sample] * window_[i] : 0;
    }
    // Cosines are the same from both ends of the window and sines opposite: half the products.
    even[0] = frame[0];
    for (std::size_t i = 1; i < kHalf; ++i) {
      even[i] = frame[i] + frame[kWindow - i];
      odd[i] = frame[i] - frame[kWindow - i];
    }
    // The sample in the middle has no partner.
    for (std::size_t bin = 0; bin < kBins; ++bin)
      real[bin] = bin % 2 == 0 ? frame[kHalf] : -frame[kHalf];
    imaginary.fill(0);
    for (std::size_t i = 0; i < kHalf; ++i)
      for (std::size_t bin = 0; bin < kBins; ++bin) {  // a bin a lane: no sum is reordered
        real[bin] += even[i] * cosines_[i * kBins + bin];
        imaginary[bin] += odd[i] * sines_[i * kBins + bin];
      }
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      const float value = std::log1p(std::hypot(real[bin], imaginary[bin]));
      image[bin * row + at] = value;
      sum += value;
      squares += static_cast<double>(value) * value;
    }
  }
  const auto count = static_cast<double>(frames * kBins);
  const double mean = sum / count;
  const double deviation = std::sqrt(std::max(0.0, squares / count - mean * mean));
  const auto shift = static_cast<float>(mean), scale = static_cast<float>(1 / (deviation + 1e-6));
  for (std::size_t bin = 0; bin < kBins; ++bin)
    for (std::size_t at = 0; at < frames; ++at)
      image[bin * row + at] = (image[bin * row + at] - shift) * scale;
}

}  // namespace sinew
