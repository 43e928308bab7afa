// What a model's scores are good for: classes of samples, or letters of sequences.
#pragma once

#include <ATen/core/Tensor.h>

#include "train/learner.hpp"

namespace sinew {

/// Scores may be on a device; a batch is in host memory.
struct Task {
  /// The sum of the samples' losses.
  at::Tensor (*loss)(const at::Tensor& scores, const Batch& batch) = nullptr;
  /// Adds labels, and how many of them are wrong.
  void (*count)(const at::Tensor& scores, const Batch& batch, Score& score) = nullptr;
};

/// Cross entropy over classes, one label a sample.
Task class_task();
/// CTC over the letters of sequences; what is wrong are edits to the right letters.
Task sequence_task();

}  // namespace sinew
