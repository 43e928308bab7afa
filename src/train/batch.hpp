// Samples as a model takes them: plain numbers, so that data knows nothing of tensors.
#pragma once

#include <cstdint>
#include <vector>

namespace sinew {

struct Batch {
  std::vector<float> inputs;         // row-major
  std::vector<std::int64_t> shape;   // of inputs; the first extent is the number of samples
  std::vector<std::int64_t> labels;  // one a sample; of sequences, all labels one after the other
  std::vector<std::int64_t> input_lengths, label_lengths;  // of sequences: one a sample

  [[nodiscard]] std::size_t samples() const noexcept {
    return shape.empty() ? 0 : static_cast<std::size_t>(shape.front());
  }
};

}  // namespace sinew
