#include "torch/torch_learner.hpp"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace sinew {
namespace {

using torch::autograd::Variable;
using torch::autograd::variable_list;

std::vector<TensorSpec> specs_of(const std::vector<Net::Named>& list) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : list)
    specs.push_back({name, {tensor.sizes().begin(), tensor.sizes().end()}});
  return specs;
}

/// After the gradient of one parameter has been added to what was there.
class GradientIsThere final : public torch::autograd::FunctionPostHook {
 public:
  GradientIsThere(const Learner::Ready*& ready, std::size_t parameter)
      : ready_(ready), parameter_(parameter) {}
  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    if (ready_ != nullptr) (*ready_)(parameter_);
    return outputs;
  }

 private:
  const Learner::Ready*& ready_;  // the learner's: whom to tell in this pass
  std::size_t parameter_;
};

class TorchLearner final : public Learner {
 public:
  explicit TorchLearner(std::unique_ptr<Net> net)
      : net_(std::move(net)),
        parameters_(specs_of(net_->parameters())),
        buffers_(specs_of(net_->buffers())) {}

  [[nodiscard]] const std::vector<TensorSpec>& parameters() const noexcept override {
    return parameters_;
  }
  [[nodiscard]] const std::vector<TensorSpec>& buffers() const noexcept override {
    return buffers_;
  }

  void move_to(const Homes& homes) override {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      auto& parameter = net_->parameters()[i].tensor;
      move(parameter, homes.parameters[i]);
      // Autograd adds to a gradient that is there, so it stays where it is put.
      parameter.mutable_grad() = at::from_blob(homes.gradients[i].data(), parameter.sizes());
      // The parameter refers to its accumulator weakly.
      accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameter));
      accumulators_.back()->add_post_hook(std::make_unique<GradientIsThere>(ready_, i));
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      move(net_->buffers()[i].tensor, homes.buffers[i]);
  }

  Score learn(const Batch& batch, float scale, std::uint64_t random_key,
              const Ready& ready) override {
    at::manual_seed(random_key);
    const auto scores = net_->forward(inputs_of(batch), true);
    const auto loss = loss_of(scores, batch);
    ready_ = &ready;
    backward_begins();
    loss.backward(at::full({}, scale, at::kFloat));
    ready_ = nullptr;
    Score score;
    score.samples = batch.samples();
    score.loss = loss.item<float>();
    return score;
  }

  Score evaluate(const Batch& batch) override {
    const at::NoGradGuard no_gradients;
    const auto scores = net_->forward(inputs_of(batch), false);
    Score score;
    score.samples = score.labels = batch.samples();
    score.loss = loss_of(scores, batch).item<float>();
    score.errors = static_cast<std::uint64_t>(
        scores.argmax(1).ne(labels_of(batch)).sum().item<std::int64_t>());
    return score;
  }

 private:
  static void move(at::Tensor& tensor, std::span<float> home) {
    const at::NoGradGuard no_gradients;
    auto there = at::from_blob(home.data(), tensor.sizes());
    there.copy_(tensor);
    tensor.set_data(there);
  }
  // Views of a batch, which outlives them; torch has no view that cannot be written to.
  static at::Tensor inputs_of(const Batch& batch) {
    return at::from_blob(const_cast<float*>(batch.inputs.data()), batch.shape);
  }
  static at::Tensor labels_of(const Batch& batch) {
    return at::from_blob(const_cast<std::int64_t*>(batch.labels.data()),
                         {static_cast<std::int64_t>(batch.labels.size())}, at::kLong);
  }
  static at::Tensor loss_of(const at::Tensor& scores, const Batch& batch) {
    return at::cross_entropy_loss(scores, labels_of(batch), {}, at::Reduction::Sum);
  }

  std::unique_ptr<Net> net_;
  std::vector<TensorSpec> parameters_, buffers_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  const Ready* ready_ = nullptr;
};

}  // namespace

std::unique_ptr<Learner> learn_classes(std::unique_ptr<Net> net) {
  return std::make_unique<TorchLearner>(std::move(net));
}

}  // namespace sinew
