// A model as tensors with names and a forward pass: less than torch::nn, and its first values are a
// function of seed and name, so that every rank and every version of torch starts alike.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace sinew {

class Net {
 public:
  struct Named {
    std::string name;
    at::Tensor tensor;
  };
  explicit Net(std::uint64_t seed) : seed_(seed) {}
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;
  virtual ~Net() = default;

  [[nodiscard]] std::vector<Named>& parameters() noexcept { return parameters_; }
  [[nodiscard]] std::vector<Named>& buffers() noexcept { return buffers_; }

  /// All tensors have moved: a chance to put them as the device likes them.
  virtual void arrange() {}

  /// Scores of each class for each sample: samples x classes, or frames x samples x classes.
  virtual at::Tensor forward(const at::Tensor& input, bool is_training) = 0;

 protected:
  /// Uniform within +-bound.
  at::Tensor uniform(const std::string& name, at::IntArrayRef shape, double bound);
  at::Tensor constant(const std::string& name, at::IntArrayRef shape, double value);
  at::Tensor buffer(const std::string& name, at::IntArrayRef shape, double value);

 private:
  at::Tensor add(const std::string& name, at::Tensor values);
  std::uint64_t seed_;
  std::vector<Named> parameters_, buffers_;
};

}  // namespace sinew
