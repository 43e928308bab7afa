#include "torch/speech.hpp"

#include <ATen/ops/_cudnn_rnn_flatten_weight.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/zeros.h>

#include <cmath>

namespace sinew {
namespace {

constexpr std::int64_t kBands = 41;    // of 161 frequencies, after two strides of 2
constexpr std::int64_t kContext = 20;  // frames that the last layer looks ahead
constexpr double kCut = 20;

class SpeechNet final : public Net {
 public:
  SpeechNet(std::uint64_t seed, const SpeechShape& shape) : Net(seed), shape_(shape) {
    const auto channels = shape.channels, hidden = shape.hidden;
    conv1_ = conv("conv1", 1, 41);
    norm1_ = norm("norm1", channels);
    conv2_ = conv("conv2", channels, 21);
    norm2_ = norm("norm2", channels);
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
      const auto name = "lstm" + std::to_string(layer);
      if (layer > 0) norms_.push_back(norm(name + ".norm", hidden));
      recurrent_.push_back(lstm(name, layer == 0 ? channels * kBands : hidden));
    }
    ahead_ = uniform("lookahead.weight", {hidden, 1, kContext + 1},
                     1 / std::sqrt(static_cast<double>(kContext + 1)));
    last_norm_ = norm("last.norm", hidden);
    last_ =
        uniform("last.weight", {kSpeechLabels, hidden}, 1 / std::sqrt(static_cast<double>(hidden)));
  }

  // cuDNN wants the weights of a layer in one piece, and would put them together in every pass.
  void arrange() override {
    constexpr std::int64_t kLstm = 2;
    for (const auto& weights : recurrent_)
      if (weights[0].is_cuda())
        at::_cudnn_rnn_flatten_weight(weights, static_cast<std::int64_t>(weights.size()),
                                      weights[0].size(1), kLstm, shape_.hidden, 0, 1, false, false);
  }

  at::Tensor forward(const at::Tensor& input, bool is_training) override {
    auto x = at::conv2d(input, conv1_.weight, conv1_.bias, {2, 2}, {20, 5});
    x = at::hardtanh(normed(x, norm1_, is_training), 0, kCut);
    x = at::conv2d(x, conv2_.weight, conv2_.bias, {2, 1}, {10, 5});
    x = at::hardtanh(normed(x, norm2_, is_training), 0, kCut);
    x = x.flatten(1, 2).permute({2, 0, 1}).contiguous();  // frames x samples x features
    const auto frames = x.size(0), samples = x.size(1);
    const auto zero = at::zeros({1, samples, shape_.hidden}, x.options());
    for (std::size_t layer = 0; layer < recurrent_.size(); ++layer) {
      if (layer > 0)
        x = normed(x.flatten(0, 1), norms_[layer - 1], is_training).view({frames, samples, -1});
      x = std::get<0>(
          at::lstm(x, {zero, zero}, recurrent_[layer], true, 1, 0.0, is_training, false, false));
    }
    // Every feature sees its own next frames.
    const std::vector<std::int64_t> one{1}, none{0};
    x = at::constant_pad_nd(x.permute({1, 2, 0}), {0, kContext});
    x = at::hardtanh(at::conv1d(x, ahead_, {}, one, at::IntArrayRef(none), one, shape_.hidden), 0,
                     kCut);
    x = normed(x.permute({2, 0, 1}).flatten(0, 1), last_norm_, is_training);
    return at::linear(x, last_).view({frames, samples, kSpeechLabels});
  }

 private:
  struct Conv {
    at::Tensor weight, bias;
  };
  struct Norm {
    at::Tensor weight, bias, mean, variance;
  };

  Conv conv(const std::string& name, std::int64_t inputs, std::int64_t height) {
    constexpr std::int64_t kWidth = 11;
    const double bound = 1 / std::sqrt(static_cast<double>(inputs * height * kWidth));
    auto weight = uniform(name + ".weight", {shape_.channels, inputs, height, kWidth}, bound);
    return {std::move(weight), uniform(name + ".bias", {shape_.channels}, bound)};
  }
  Norm norm(const std::string& name, std::int64_t features) {
    return {constant(name + ".weight", {features}, 1), constant(name + ".bias", {features}, 0),
            buffer(name + ".mean", {features}, 0), buffer(name + ".variance", {features}, 1)};
  }
  std::vector<at::Tensor> lstm(const std::string& name, std::int64_t inputs) {
    const auto gates = 4 * shape_.hidden;
    const double bound = 1 / std::sqrt(static_cast<double>(shape_.hidden));
    return {uniform(name + ".weight_ih", {gates, inputs}, bound),
            uniform(name + ".weight_hh", {gates, shape_.hidden}, bound),
            uniform(name + ".bias_ih", {gates}, bound), uniform(name + ".bias_hh", {gates}, bound)};
  }
  static at::Tensor normed(const at::Tensor& x, const Norm& norm, bool is_training) {
    return at::batch_norm(x, norm.weight, norm.bias, norm.mean, norm.variance, is_training, 0.1,
                          1e-5, true);
  }

  SpeechShape shape_;
  Conv conv1_, conv2_;
  Norm norm1_, norm2_, last_norm_;
  std::vector<Norm> norms_;
  std::vector<std::vector<at::Tensor>> recurrent_;
  at::Tensor ahead_, last_;
};

}  // namespace

std::unique_ptr<Net> make_speech_net(std::uint64_t seed, const SpeechShape& shape) {
  return std::make_unique<SpeechNet>(seed, shape);
}

}  // namespace sinew
