#include "cli/sparse_gradient.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include <sinew/error.hpp>
#include "cli/arguments.hpp"

namespace sinew {
namespace {

constexpr std::size_t kNoise = std::size_t{1} << 20;
constexpr std::size_t kStretch = 4096;  // elements that are neighbours in the table of noise too

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9U;
  x = (x ^ x >> 27) * 0x94D049BB133111EBU;
  return x ^ x >> 31;
}

double uniform(std::uint64_t at) {
  return (static_cast<double>(mix(at * 0x9E3779B97F4A7C15U) >> 11) + 0.5) * 0x1p-53;
}

double normal(std::uint64_t at) {
  return std::sqrt(-2 * std::log(uniform(2 * at))) *
         std::cos(6.283185307179586 * uniform(2 * at + 1));
}

double laplace(std::uint64_t at) {
  const double u = uniform(at) - 0.5;
  return u < 0 ? std::log(1 + 2 * u) : -std::log(1 - 2 * u);
}

// The header of a .npy file, a Python dictionary, as text; `data` is left at what follows it.
std::string npy_header(std::string_view& data, const std::string& path) {
  const auto refuse = [&](std::string_view why) {
    throw Error(Errc::invalid_argument, fmt::format("{}: {}", path, why));
  };
  constexpr std::size_t kHead = 8;
  if (data.size() < kHead + 4) refuse("the .npy header is cut off");
  const auto byte = [&](std::size_t at) {
    return std::size_t{static_cast<unsigned char>(data[at])};
  };
  const bool old = byte(6) == 1;
  const std::size_t length =
      old ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  const std::size_t begin = kHead + (old ? 2 : 4);
  if (length > data.size() - begin) refuse("the .npy header is cut off");
  std::string header(data.substr(begin, length));
  data.remove_prefix(begin + length);
  if (header.find("'<f4'") == std::string::npos)
    refuse("only little-endian f32 ('<f4') arrays are read; convert with .astype('<f4')");
  if (header.find("'fortran_order': False") == std::string::npos)
    refuse("only arrays in C order are read; save numpy.ascontiguousarray(x)");
  return header;
}

}  // namespace

std::vector<float> read_gradient(const std::string& path) {
  const auto text = read_text(path);
  std::string_view data = text;
  if (data.starts_with("\x93NUMPY")) npy_header(data, path);
  if (data.empty() || data.size() % sizeof(float) != 0)
    throw Error(
        Errc::invalid_argument,
        fmt::format("{}: {} bytes are not a whole number of f32 values", path, data.size()));
  std::vector<float> values(data.size() / sizeof(float));
  std::memcpy(values.data(), data.data(), data.size());
  return values;
}

SparseGradient::SparseGradient(std::size_t elements, int rank, const std::string& file)
    : elements_(elements), rank_(rank), noise_(kNoise + kStretch) {
  for (std::size_t i = 0; i < kNoise; ++i)
    noise_[i] = static_cast<float>(laplace(i + 1) * std::exp(0.5 * normal(i + kNoise)));
  std::copy_n(noise_.begin(), kStretch, noise_.begin() + kNoise);
  if (!file.empty()) {
    scale_ = read_gradient(file);
    scale_.resize(elements);
  }
  constexpr std::array<double, 8> kLayers{251168,  6764800, 5128000, 5128000,
                                          5128000, 5128000, 16800,   24800};
  const double all = std::accumulate(kLayers.begin(), kLayers.end(), 0.0);
  double end = 0;
  for (std::size_t i = 0; i < kLayers.size(); ++i) {
    end += kLayers[i] / all * static_cast<double>(elements);
    layers_.push_back(
        {static_cast<std::size_t>(end), static_cast<float>(std::exp(normal(77 + i)))});
  }
  layers_.back().end = elements;
}

void SparseGradient::write(std::span<float> to, std::uint64_t step) const {
  std::size_t layer = 0;
  for (std::size_t begin = 0; begin < elements_; begin += kStretch) {
    const auto count = std::min(kStretch, elements_ - begin);
    const auto own = mix(mix(step * 1024 + static_cast<std::uint64_t>(rank_)) + begin);
    const float* const mine = noise_.data() + own % kNoise;
    const float* const shared = noise_.data() + mix(begin) % kNoise;
    while (layers_[layer].end <= begin) ++layer;
    const float scale = layers_[layer].scale;
    float* const out = to.data() + begin;
    if (scale_.empty())
      for (std::size_t i = 0; i < count; ++i) out[i] = scale * (0.5F * shared[i] + mine[i]);
    else
      for (std::size_t i = 0; i < count; ++i) out[i] = scale_[begin + i] * (1 + 0.5F * mine[i]);
  }
}

}  // namespace sinew
