#include "torch/models.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/csrc/api/include/torch/version.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "torch/dense_layer.hpp"
#include "torch/speech.hpp"
#include "torch/torch_learner.hpp"

namespace sinew {
namespace {

constexpr const char* kOpenBlas = "openblas_set_num_threads";

Precision precision_of(std::string_view name) {
  constexpr std::array<std::string_view, 2> kNames{"f32", "bf16"};
  if (name == kNames[0]) return Precision::f32;
  if (name == kNames[1]) return Precision::bf16;
  throw Error(Errc::invalid_argument, unknown("precision", name, kNames));
}

/// Scores are f32, whatever the layers compute in.
class ClassNet : public Net {
 public:
  explicit ClassNet(const ModelOptions& options)
      : Net(options.seed), precision_(precision_of(options.precision)) {}
  at::Tensor forward(const at::Tensor& input, bool is_training) final {
    return scores(input, is_training).to(at::kFloat);
  }

 protected:
  virtual at::Tensor scores(const at::Tensor& input, bool is_training) = 0;

  [[nodiscard]] at::Tensor through(const Layer& layer, const at::Tensor& x) const {
    if (layer.weight.dim() == 2) return dense(x, layer, precision_);
    return at::conv2d(in(precision_, x), in(precision_, layer.weight), in(precision_, layer.bias));
  }
  Layer flat(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
    return layer(name, {outputs, inputs}, inputs);
  }
  Layer conv(const std::string& name, std::int64_t inputs, std::int64_t outputs,
             std::int64_t side) {
    return layer(name, {outputs, inputs, side, side}, inputs * side * side);
  }

 private:
  Layer layer(const std::string& name, std::vector<std::int64_t> shape, std::int64_t fan_in) {
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    const auto outputs = shape[0];
    auto weight = uniform(name + ".weight", shape, bound);
    return {std::move(weight), uniform(name + ".bias", {outputs}, bound)};
  }
  Precision precision_;
};

/// Dense layers with rectifiers between them.
class Mlp final : public ClassNet {
 public:
  Mlp(const ModelOptions& options, const std::vector<std::int64_t>& widths) : ClassNet(options) {
    for (std::size_t i = 1; i < widths.size(); ++i)
      layers_.push_back(flat("dense" + std::to_string(i), widths[i - 1], widths[i]));
  }

 private:
  at::Tensor scores(const at::Tensor& input, bool /*is_training*/) override {
    auto x = input.flatten(1);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (i > 0) x = x.relu();
      x = through(layers_[i], x);
    }
    return x;
  }

  std::vector<Layer> layers_;
};

/// Two convolutions, pooling, two dense layers, for images of 28 x 28.
class Cnn final : public ClassNet {
 public:
  explicit Cnn(const ModelOptions& options)
      : ClassNet(options),
        dropout_(options.dropout),
        conv1_(conv("conv1", 1, 32, 3)),
        conv2_(conv("conv2", 32, 64, 3)),
        dense1_(flat("dense1", 64 * 12 * 12, 128)),
        dense2_(flat("dense2", 128, 10)) {}

 private:
  at::Tensor scores(const at::Tensor& input, bool is_training) override {
    auto x = through(conv2_, through(conv1_, input).relu()).relu();
    x = drop(at::max_pool2d(x, 2), 0.25, is_training).flatten(1);
    x = drop(through(dense1_, x).relu(), 0.5, is_training);
    return through(dense2_, x);
  }
  [[nodiscard]] at::Tensor drop(const at::Tensor& x, double usual, bool is_training) const {
    const auto share = dropout_ < 0 ? usual : dropout_;
    return is_training && share > 0 ? at::dropout(x, share, true) : x;
  }
  double dropout_;
  Layer conv1_, conv2_, dense1_, dense2_;
};

DeviceChoice device_of(const ModelOptions& options) {
  if (options.device == "cpu") return {at::kCPU, options.apart};
  if (options.device != "cuda")
    throw Error(Errc::invalid_argument,
                unknown("device", options.device, std::array<std::string_view, 2>{"cpu", "cuda"}));
  if (!at::hasCUDA())
    throw Error(Errc::unsupported,
                fmt::format("--device cuda: {} finds no GPU; use --device cpu, or a torch built "
                            "for CUDA on a machine that has one",
                            "torch " TORCH_VERSION));
  const auto count = c10::impl::VirtualGuardImpl(at::kCUDA).deviceCount();
  return {at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(options.local_rank % count)), true};
}

std::unique_ptr<Learner> learn_classes(std::unique_ptr<Net> net, const ModelOptions& options) {
  return make_learner(std::move(net), class_task(), device_of(options));
}

std::unique_ptr<Learner> make_tiny(const ModelOptions& options) {
  return learn_classes(std::make_unique<Mlp>(options, std::vector<std::int64_t>{10, 20, 10}),
                       options);
}
std::unique_ptr<Learner> make_mlp(const ModelOptions& options) {
  return learn_classes(
      std::make_unique<Mlp>(options, std::vector<std::int64_t>{784, 1024, 384, 10}), options);
}
std::unique_ptr<Learner> make_cnn(const ModelOptions& options) {
  return learn_classes(std::make_unique<Cnn>(options), options);
}

template <std::int64_t Channels, std::int64_t Hidden, std::int64_t Layers>
std::unique_ptr<Learner> make_speech(const ModelOptions& options) {
  return make_learner(make_speech_net(options.seed, {Channels, Hidden, Layers}), sequence_task(),
                      device_of(options));
}

constexpr SampleForm kRow{{10}, true, 10}, kPixels{{784}, true, 10}, kImage{{1, 28, 28}, false, 10},
    kSound{{1, 161, -1}, false, kSpeechLabels};

constexpr ModelInfo kModels[] = {
    {"tiny", "dense layers 10-20-10: next to nothing to compute or send", 430, "rows", make_tiny,
     kRow},
    {"mlp", "dense layers 784-1024-384-10: much to send for what it computes", 1'201'290, "fashion",
     make_mlp, kPixels},
    {"cnn", "two convolutions and two dense layers: much to compute for what it sends", 1'199'882,
     "fashion", make_cnn, kImage},
    {"ctc-small", "letters of sound: two convolutions, 2 LSTM layers of 128", 391'944, "tones",
     make_speech<8, 128, 2>, kSound, true},
    {"ctc-mid", "the same with 3 layers of 256", 2'069'392, "tones", make_speech<16, 256, 3>,
     kSound, true},
    {"lstman4", "the same with 5 layers of 800", 27'569'568, "tones", make_speech<32, 800, 5>,
     kSound, true},
};

// "1 x 161 x any", "1 x 28 x 28", "10 numbers".
std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text;
  for (const auto extent : shape)
    text += fmt::format("{}{}", text.empty() ? "" : " x ",
                        extent < 0 ? std::string("any") : std::to_string(extent));
  return shape.size() == 1 ? text + " numbers" : text;
}

std::int64_t numbers_of(std::span<const std::int64_t> shape) {
  std::int64_t numbers = 1;
  for (const auto extent : shape) numbers *= extent;
  return numbers;
}

std::vector<std::int64_t> shape_of(const SampleForm& form) {
  std::vector<std::int64_t> shape;
  for (const auto extent : form.extents)
    if (extent != 0) shape.push_back(extent);
  return shape;
}

}  // namespace

std::span<const ModelInfo> models() noexcept { return kModels; }

const ModelInfo& find_model(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& model : kModels) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  throw Error(Errc::invalid_argument, unknown("model", name, names));
}

void check_fits(const ModelInfo& model, std::span<const std::int64_t> sample,
                std::string_view data) {
  const auto wanted = shape_of(model.sample);
  const bool fits = model.sample.any_shape
                        ? numbers_of(sample) == numbers_of(wanted)
                        : std::equal(sample.begin(), sample.end(), wanted.begin(), wanted.end());
  if (sample.empty() || fits) return;
  throw Error(Errc::invalid_argument,
              fmt::format("the model {} takes samples of {}, and those of {} are {}; without "
                          "--data it learns from {}",
                          model.name, shape_text(wanted), data, shape_text(sample), model.data));
}

void check_fits(const ModelInfo& model, const Dataset& set, std::string_view data) {
  check_fits(model, set.shape(), data);
  if (set.classes() > model.sample.classes)
    throw Error(Errc::invalid_argument,
                fmt::format("the model {} tells {} classes apart, and {} has {}", model.name,
                            model.sample.classes, data, set.classes()));
}

void check_precision(const ModelInfo& model, std::string_view precision) {
  if (precision_of(precision) != Precision::f32 && model.learns_sequences)
    throw Error(Errc::invalid_argument,
                fmt::format("the model {} computes in f32; leave --precision out", model.name));
}

void use_threads(int threads) {
  at::set_num_threads(threads);
  // OpenBLAS has threads of its own, and torch does not tell it.
  if (auto* set = ::dlsym(RTLD_DEFAULT, kOpenBlas)) reinterpret_cast<void (*)(int)>(set)(threads);
}

bool has_fast_blas() noexcept {
  return ::dlsym(RTLD_DEFAULT, kOpenBlas) != nullptr || at::hasMKL();
}

std::string_view torch_version() noexcept { return TORCH_VERSION; }

}  // namespace sinew
