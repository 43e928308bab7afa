#include "torch/dense_layer.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <span>

#include "kernel/convert.hpp"

namespace sinew {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kNeedsInput = "needs_input";

template <class T, class Tensor>
auto span_of(const Tensor& tensor) {
  return std::span(static_cast<T*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel()));
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.is_contiguous();
}

// Torch converts long tensors one element at a time.
at::Tensor narrowed(const at::Tensor& tensor) {
  if (!is_plain(tensor)) return tensor.to(at::kBFloat16);
  auto narrow = at::empty(tensor.sizes(), at::kBFloat16);
  convert(span_of<const float>(tensor), span_of<bf16>(narrow));
  return narrow;
}

/// home += left x right.
void add_product(at::Tensor home, const at::Tensor& left, const at::Tensor& right) {
  if (home.scalar_type() == left.scalar_type()) {
    home.addmm_(left, right);
    return;
  }
  if (!is_plain(home)) {
    home.add_(left.mm(right));
    return;
  }
  // Some rows at a time, so that the narrow product is still in the cache when it is added; not
  // fewer, because every product costs some tens of microseconds besides.
  constexpr std::int64_t kRows = 512;
  auto product = at::empty({std::min(kRows, left.size(0)), right.size(1)}, left.options());
  for (std::int64_t row = 0; row < left.size(0); row += kRows) {
    const auto rows = std::min(kRows, left.size(0) - row);
    auto part = product.narrow(0, 0, rows);
    at::mm_out(part, left.narrow(0, row, rows), right);
    add_converted(span_of<const bf16>(part), span_of<float>(home.narrow(0, row, rows)));
  }
}

struct DenseFunction final : torch::autograd::Function<DenseFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const at::Tensor& used_weight) {
    context->save_for_backward({x, weight, bias, used_weight});
    context->saved_data[kNeedsInput] = x.requires_grad();
    return at::linear(x, used_weight, bias.to(x.scalar_type()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& slopes) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1], &bias = saved[2], &used_weight = saved[3];
    const auto& slope = slopes[0];
    at::Tensor to_x, to_weight;
    if (context->saved_data[kNeedsInput].toBool()) to_x = slope.mm(used_weight);
    if (weight.grad().defined())
      add_product(weight.grad(), slope.t(), x);
    else
      to_weight = slope.t().mm(x).to(at::kFloat);
    at::Tensor to_bias = slope.sum(0, false, at::kFloat);
    if (auto home = bias.grad(); home.defined()) {
      home.add_(to_bias);
      to_bias.reset();
    }
    return {to_x, to_weight, to_bias, {}};
  }
};

}  // namespace

at::Tensor in(Precision precision, const at::Tensor& tensor) {
  return precision == Precision::bf16 ? tensor.to(at::kBFloat16) : tensor;
}

at::Tensor dense(const at::Tensor& x, const Layer& layer, Precision precision) {
  const auto weight = layer.weight.detach();
  return DenseFunction::apply(in(precision, x), layer.weight, layer.bias,
                              precision == Precision::bf16 ? narrowed(weight) : weight);
}

}  // namespace sinew
