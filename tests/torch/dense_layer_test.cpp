// A dense layer adds its gradients where they belong, whatever the precision.
#include "torch/dense_layer.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

namespace sinew {
namespace {

/// Whole numbers from -2 to 2, which products of a few of them have exactly in 16 bits too.
at::Tensor numbers(std::int64_t rows, std::int64_t columns) {
  return at::arange(rows * columns, at::kFloat).mul(7).remainder(5).sub(2).view({rows, columns});
}

// As many rows as are multiplied at once, fewer, and more with some left.
TEST(DenseLayer, adds_gradients_of_any_number_of_rows_to_what_is_there) {
  constexpr std::int64_t kSamples = 6, kInputs = 40;
  for (const auto precision : {Precision::f32, Precision::bf16})
    for (const std::int64_t outputs : {10, 512, 700, 1024}) {
      Layer layer{numbers(outputs, kInputs).requires_grad_(), numbers(1, outputs).view({outputs})};
      layer.bias.requires_grad_();
      layer.weight.mutable_grad() = at::full({outputs, kInputs}, 3.0F);
      layer.bias.mutable_grad() = at::full({outputs}, 3.0F);
      const auto x = numbers(kSamples, kInputs), slope = numbers(kSamples, outputs);
      const auto y = dense(x, layer, precision);
      y.backward(slope.to(y.scalar_type()));
      EXPECT_TRUE(layer.weight.grad().equal(slope.t().mm(x).add(3))) << outputs;
      EXPECT_TRUE(layer.bias.grad().equal(slope.sum(0).add(3))) << outputs;
    }
}

}  // namespace
}  // namespace sinew
