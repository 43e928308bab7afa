// What can be trained, as the trainer sees it: named tensors in memory that the trainer gives, and
// a pass over a batch that adds to their gradients. No framework shows through.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <sinew/scheme.hpp>
#include "train/batch.hpp"

namespace sinew {

/// Sums over the samples of a batch; divided by `samples` they are what people want to see.
struct Score {
  double loss = 0;
  std::uint64_t errors = 0;  // wrong labels; of sequences: edits to the right ones
  std::uint64_t labels = 0;  // how many could have been wrong
  std::uint64_t samples = 0;

  Score& operator+=(const Score& other) noexcept {
    loss += other.loss;
    errors += other.errors;
    labels += other.labels;
    samples += other.samples;
    return *this;
  }
};

/// Where a learner's tensors live, in the order in which it lists them.
struct Homes {
  std::vector<std::span<float>> parameters, gradients, buffers;
};

class Learner {
 public:
  Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  virtual ~Learner() = default;

  /// In the order of the forward pass.
  [[nodiscard]] virtual const std::vector<TensorSpec>& parameters() const noexcept = 0;
  /// What is kept besides, such as statistics of batch normalisation.
  [[nodiscard]] virtual const std::vector<TensorSpec>& buffers() const noexcept = 0;

  /// From now on tensors are in these places, which outlive the learner's use. Values move along;
  /// gradients are as the places are.
  virtual void move_to(const Homes& homes) = 0;

  /// `parameter`'s gradient is complete and in its home. Called by one thread at a time, and before
  /// learn() returns.
  using Ready = std::function<void(std::size_t parameter)>;

  /// Called in the thread of learn() between the two passes.
  std::function<void()> backward_begins = [] {};

  /// Whether learn() adds to what is in the homes of gradients. Otherwise it may replace it, which
  /// is the same where they are 0.
  [[nodiscard]] virtual bool accumulates() const noexcept = 0;

  /// Forward and backward. Adds the gradient of scale * (sum of the samples' losses). Randomness
  /// (dropout) is a function of `random_key`. An empty `ready` says that more passes of the step
  /// follow: gradients must be in their homes only after the last.
  virtual Score learn(const Batch& batch, float scale, std::uint64_t random_key,
                      const Ready& ready) = 0;
  /// Forward only, without randomness; counts errors.
  virtual Score evaluate(const Batch& batch) = 0;
};

}  // namespace sinew
