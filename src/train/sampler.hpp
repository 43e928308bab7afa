// Who learns from which samples in which step: a function of the step, so that going on after a
// restart needs nothing but its number.
#pragma once

#include <cstdint>
#include <vector>

namespace sinew {

struct Sampling {
  std::size_t samples = 0;       // of the training set
  std::size_t global_batch = 0;  // of all workers together, in one step
  std::uint64_t seed = 0;
  int rank = 0;
  int size = 1;
};

/// One worker's part of one step.
struct Share {
  std::vector<std::uint32_t> samples;
  std::size_t of_all = 0;  // samples of this step over all workers: what the sum is divided by
};

/// Every epoch is a permutation of all samples, cut into global batches. The last one has what is
/// left. A worker gets an equal part of each batch, give or take one sample, so that workers
/// together see what one worker alone would.
class Sampler {
 public:
  /// Throws Error{invalid_argument} when there is not a sample for each worker.
  explicit Sampler(const Sampling& sampling);

  [[nodiscard]] std::uint64_t steps_per_epoch() const noexcept { return steps_per_epoch_; }
  /// Reuses what `into` holds.
  void at(std::uint64_t step, Share& into) const;

 private:
  Sampling sampling_;
  std::uint64_t steps_per_epoch_;
};

}  // namespace sinew
