// Gradients to compress in a benchmark: like those of training, different on every rank and in
// every step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sinew {

/// Heavy tails (Laplace times log-normal), layers of different scale, half as much again shared by
/// all ranks as a rank has for itself. The layers are those of a speech model (an LSTM of
/// 27,569,568 parameters), scaled to other sizes.
class SparseGradient {
 public:
  /// With a file its values are the scale of every element instead.
  SparseGradient(std::size_t elements, int rank, const std::string& file);
  void write(std::span<float> to, std::uint64_t step) const;

 private:
  std::size_t elements_;
  int rank_;
  std::vector<float> noise_;
  std::vector<float> scale_;  // of every element, from the file; empty: by layers
  struct Layer {
    std::size_t end;
    float scale;
  };
  std::vector<Layer> layers_;
};

/// The f32 values of a .npy file (little-endian, C order), or of any other file taken as raw.
/// Throws Error{invalid_argument} where it is neither.
std::vector<float> read_gradient(const std::string& path);

}  // namespace sinew
