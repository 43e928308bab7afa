#include "torch/task.hpp"

#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ctc_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sum.h>

#include "torch/speech.hpp"
#include "train/transcript.hpp"

namespace sinew {
namespace {

// A view of a batch, which outlives it, or a copy on the device where scores are. Torch has no view
// that cannot be written to.
at::Tensor beside(const at::Tensor& scores, const std::vector<std::int64_t>& numbers) {
  return at::from_blob(const_cast<std::int64_t*>(numbers.data()),
                       {static_cast<std::int64_t>(numbers.size())}, at::kLong)
      .to(scores.device());
}

at::Tensor class_loss(const at::Tensor& scores, const Batch& batch) {
  return at::cross_entropy_loss(scores, beside(scores, batch.labels), {}, at::Reduction::Sum);
}
void count_classes(const at::Tensor& scores, const Batch& batch, Score& score) {
  score.labels += batch.labels.size();
  score.errors += static_cast<std::uint64_t>(
      scores.argmax(1).ne(beside(scores, batch.labels)).sum().item<std::int64_t>());
}

std::vector<std::int64_t> frames_of(const Batch& batch) {
  std::vector<std::int64_t> frames;
  for (const auto length : batch.input_lengths) frames.push_back(speech_frames(length));
  return frames;
}
at::Tensor sequence_loss(const at::Tensor& scores, const Batch& batch) {
  return at::ctc_loss(at::log_softmax(scores, 2), beside(scores, batch.labels), frames_of(batch),
                      batch.label_lengths, 0, at::Reduction::Sum, true);
}
void count_letters(const at::Tensor& scores, const Batch& batch, Score& score) {
  const auto best = scores.argmax(2).transpose(0, 1).cpu().contiguous();  // samples x frames
  const auto frames = frames_of(batch);
  auto labels = std::span<const std::int64_t>(batch.labels);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto* row = best.data_ptr<std::int64_t>() + static_cast<std::int64_t>(i) * best.size(1);
    const auto right = labels.first(static_cast<std::size_t>(batch.label_lengths[i]));
    labels = labels.subspan(right.size());
    score.errors += edit_distance(collapse({row, static_cast<std::size_t>(frames[i])}), right);
    score.labels += right.size();
  }
}

}  // namespace

Task class_task() { return {class_loss, count_classes}; }
Task sequence_task() { return {sequence_loss, count_letters}; }

}  // namespace sinew
