// A dense layer that adds its gradients where they belong by the products that make them: what
// autograd would do in three passes (a product, its sum with what is there, and forgetting it)
// takes none.
#pragma once

#include <ATen/core/Tensor.h>

namespace sinew {

/// What torch::nn::Linear and Conv2d have.
struct Layer {
  at::Tensor weight, bias;
};

/// What products are computed in. Parameters, gradients and their sums are f32 whatever it is.
enum class Precision : std::uint8_t { f32, bf16 };

/// Rows of `x` times the weight, plus the bias; in the layer's precision. Where the parameters have
/// gradients the backward pass adds to them, and autograd gets none.
at::Tensor dense(const at::Tensor& x, const Layer& layer, Precision precision);

/// A tensor as products take it.
at::Tensor in(Precision precision, const at::Tensor& tensor);

}  // namespace sinew
