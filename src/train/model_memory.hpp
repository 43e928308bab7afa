// A model's parameters and buffers as flat memory in the order of a plan, and on and off disk.
#pragma once

#include "train/bucket_plan.hpp"
#include "train/checkpoint.hpp"
#include "train/learner.hpp"
#include "train/reducer.hpp"

namespace sinew {

class ModelMemory {
 public:
  /// Moves the learner's tensors here, and its gradients to the reducer's.
  ModelMemory(Learner& learner, const BucketPlan& plan, const GradientReducer& reducer);
  ModelMemory(const ModelMemory&) = delete;
  ModelMemory& operator=(const ModelMemory&) = delete;

  /// Gradients are somewhere else from now on; everything else stays.
  void move_gradients(Learner& learner, const GradientReducer& reducer);

  [[nodiscard]] std::span<float> parameters() noexcept { return parameters_; }
  [[nodiscard]] std::span<float> buffers() noexcept { return buffers_; }
  [[nodiscard]] std::uint64_t hash() const noexcept;

  void save(Snapshot& into) const;
  /// Throws Error{invalid_argument} that names the tensor that is missing or of another shape; then
  /// nothing has changed.
  void load(const Snapshot& from);

 private:
  struct Tensor {
    std::string name;  // in a snapshot
    TensorSpec spec;
    std::span<float> values;
  };
  std::vector<float> parameters_, buffers_;
  Homes homes_;
  std::vector<Tensor> tensors_;
};

}  // namespace sinew
