#include "torch/torch_learner.hpp"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <sinew/error.hpp>
#include "torch/staging.hpp"

namespace sinew {
namespace {

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
  GradientIsThere(const Learner::Ready& tell, std::size_t parameter)
      : tell_(tell), parameter_(parameter) {}
  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    tell_(parameter_);
    return outputs;
  }

 private:
  const Learner::Ready& tell_;  // the learner's, which outlives the graph
  std::size_t parameter_;
};

// What torch says without the calls that led there, which are of no use to who runs a training.
template <class Pass>
Score in_one_line(const Batch& batch, const Pass& pass) {
  try {
    return pass();
  } catch (const c10::Error& error) {
    const std::string_view text = error.what_without_backtrace();
    throw Error(Errc::system,
                fmt::format("torch cannot compute a pass over inputs of {}: {}",
                            fmt::join(batch.shape, " x "), text.substr(0, text.find('\n'))));
  }
}

class TorchLearner final : public Learner {
 public:
  TorchLearner(std::unique_ptr<Net> net, const Task& task, const DeviceChoice& choice)
      : task_(task),
        net_(std::move(net)),
        parameters_(specs_of(net_->parameters())),
        buffers_(specs_of(net_->buffers())) {
    if (choice.apart || !choice.device.is_cpu())
      staging_ = std::make_unique<Staging>(choice.device);
  }

  [[nodiscard]] const std::vector<TensorSpec>& parameters() const noexcept override {
    return parameters_;
  }
  [[nodiscard]] const std::vector<TensorSpec>& buffers() const noexcept override {
    return buffers_;
  }

  // What comes from a device replaces what is here.
  [[nodiscard]] bool accumulates() const noexcept override { return staging_ == nullptr; }

  void move_to(const Homes& homes) override {
    if (staging_)
      staging_->move(*net_, homes);
    else
      move_in(homes);
    if (!accumulators_.empty()) return;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      // The parameter refers to its accumulator weakly.
      accumulators_.push_back(
          torch::autograd::impl::grad_accumulator(net_->parameters()[i].tensor));
      accumulators_.back()->add_post_hook(std::make_unique<GradientIsThere>(tell_, i));
    }
  }

  Score learn(const Batch& batch, float scale, std::uint64_t random_key,
              const Ready& ready) override {
    return in_one_line(batch, [&] {
      at::manual_seed(random_key);
      ready_ = ready ? &ready : nullptr;
      const auto loss = staging_ ? pass_on_device(batch, scale) : pass(batch, scale);
      ready_ = nullptr;
      Score score;
      score.samples = batch.samples();
      score.loss = loss.item<float>();
      return score;
    });
  }

  Score evaluate(const Batch& batch) override {
    return in_one_line(batch, [&] {
      const at::NoGradGuard no_gradients;
      if (staging_) staging_->upload();
      const auto scores = net_->forward(inputs_of(batch), false);
      Score score;
      score.samples = batch.samples();
      score.loss = task_.loss(scores, batch).item<float>();
      task_.count(scores, batch, score);
      return score;
    });
  }

 private:
  at::Tensor pass(const Batch& batch, float scale) {
    const auto scores = net_->forward(inputs_of(batch), true);
    auto loss = task_.loss(scores, batch);
    backward_begins();
    loss.backward(at::full({}, scale, loss.options()));
    return loss;
  }
  at::Tensor pass_on_device(const Batch& batch, float scale) {
    staging_->upload();
    staging_->begin(ready_);
    try {
      auto loss = pass(batch, scale);
      staging_->finish();
      return loss;
    } catch (...) {
      staging_->wait();  // nobody is told any more once this has left
      throw;
    }
  }
  void move_in(const Homes& homes) {
    const at::NoGradGuard no_gradients;
    const auto move = [](at::Tensor& tensor, std::span<float> home) {
      auto there = at::from_blob(home.data(), tensor.sizes());
      there.copy_(tensor);
      tensor.set_data(there);
    };
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      auto& parameter = net_->parameters()[i].tensor;
      move(parameter, homes.parameters[i]);
      // Autograd adds to a gradient that is there, so it stays where it is put.
      parameter.mutable_grad() = at::from_blob(homes.gradients[i].data(), parameter.sizes());
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      move(net_->buffers()[i].tensor, homes.buffers[i]);
  }
  // A view of the batch, which outlives it, or a copy on the device.
  [[nodiscard]] at::Tensor inputs_of(const Batch& batch) const {
    auto inputs = at::from_blob(const_cast<float*>(batch.inputs.data()), batch.shape);
    return staging_ ? inputs.to(staging_->device()) : inputs;
  }
  void gradient_is_there(std::size_t parameter) {
    if (staging_)
      staging_->fetch(parameter);
    else if (ready_ != nullptr)
      (*ready_)(parameter);
  }

  Task task_;
  std::unique_ptr<Net> net_;
  std::vector<TensorSpec> parameters_, buffers_;
  std::unique_ptr<Staging> staging_;
  const Ready* ready_ = nullptr;  // whom to tell in this pass
  const Ready tell_ = [this](std::size_t parameter) { gradient_is_there(parameter); };
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
};

}  // namespace

std::unique_ptr<Learner> make_learner(std::unique_ptr<Net> net, const Task& task,
                                      const DeviceChoice& choice) {
  return std::make_unique<TorchLearner>(std::move(net), task, choice);
}

}  // namespace sinew
