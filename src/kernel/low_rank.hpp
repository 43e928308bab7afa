// Products of a matrix with a few vectors: what a low-rank approximation is made of. Matrices are
// row-major; the few vectors lie one after the other.
#pragma once

#include <cstddef>
#include <span>

namespace sinew {

struct MatrixShape {
  std::size_t rows = 0, columns = 0;
};

/// out[v] = matrix * in[v]; vectors of `columns` in, of `rows` out.
void multiply(std::span<const float> matrix, MatrixShape shape, std::span<const float> in,
              std::span<float> out) noexcept;
/// out[v] = matrix^T * in[v]; vectors of `rows` in, of `columns` out.
void multiply_transposed(std::span<const float> matrix, MatrixShape shape,
                         std::span<const float> in, std::span<float> out) noexcept;
/// matrix = sum over v of left[v] * right[v]^T.
void outer_product(std::span<const float> left, std::span<const float> right, MatrixShape shape,
                   std::span<float> matrix) noexcept;
/// Makes the vectors orthonormal, in order. What depends on those before it becomes zero.
void orthonormalize(std::span<float> vectors, std::size_t length) noexcept;

}  // namespace sinew
