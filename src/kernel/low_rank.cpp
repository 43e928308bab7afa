#include "kernel/low_rank.hpp"

#include <algorithm>
#include <cmath>

namespace sinew {
namespace {

// Independent sums, so that the compiler may keep them in vectors; and the same order whatever it
// does.
float dot(const float* a, const float* b, std::size_t elements) noexcept {
  constexpr std::size_t kLanes = 16;
  float sums[kLanes] = {};
  std::size_t at = 0;
  for (; at + kLanes <= elements; at += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[at + lane] * b[at + lane];
  for (; at < elements; ++at) sums[0] += a[at] * b[at];
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

void add_scaled(float factor, const float* from, float* to, std::size_t elements) noexcept {
  for (std::size_t i = 0; i < elements; ++i) to[i] += factor * from[i];
}

double exact_dot(std::span<const float> a, std::span<const float> b) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

}  // namespace

void multiply(std::span<const float> matrix, MatrixShape shape, std::span<const float> in,
              std::span<float> out) noexcept {
  const auto vectors = in.size() / shape.columns;
  for (std::size_t row = 0; row < shape.rows; ++row)
    for (std::size_t v = 0; v < vectors; ++v)
      out[v * shape.rows + row] =
          dot(matrix.data() + row * shape.columns, in.data() + v * shape.columns, shape.columns);
}

void multiply_transposed(std::span<const float> matrix, MatrixShape shape,
                         std::span<const float> in, std::span<float> out) noexcept {
  const auto vectors = in.size() / shape.rows;
  std::fill(out.begin(), out.end(), 0.0F);
  for (std::size_t row = 0; row < shape.rows; ++row)
    for (std::size_t v = 0; v < vectors; ++v)
      add_scaled(in[v * shape.rows + row], matrix.data() + row * shape.columns,
                 out.data() + v * shape.columns, shape.columns);
}

void outer_product(std::span<const float> left, std::span<const float> right, MatrixShape shape,
                   std::span<float> matrix) noexcept {
  const auto vectors = left.size() / shape.rows;
  std::fill(matrix.begin(), matrix.end(), 0.0F);
  for (std::size_t row = 0; row < shape.rows; ++row)
    for (std::size_t v = 0; v < vectors; ++v)
      add_scaled(left[v * shape.rows + row], right.data() + v * shape.columns,
                 matrix.data() + row * shape.columns, shape.columns);
}

void orthonormalize(std::span<float> vectors, std::size_t length) noexcept {
  constexpr double kDependent = 1e-6;  // of its length is left: the rest is rounding
  for (std::size_t v = 0; (v + 1) * length <= vectors.size(); ++v) {
    const auto one = vectors.subspan(v * length, length);
    const double before = std::sqrt(exact_dot(one, one));
    for (int again = 0; again < 2; ++again)  // the second time takes what rounding left
      for (std::size_t u = 0; u < v; ++u) {
        const auto other = vectors.subspan(u * length, length);
        const auto along = static_cast<float>(exact_dot(one, other));
        add_scaled(-along, other.data(), one.data(), length);
      }
    const double after = std::sqrt(exact_dot(one, one));
    const double factor = after > before * kDependent ? 1 / after : 0;
    for (float& value : one) value = static_cast<float>(value * factor);
  }
}

}  // namespace sinew
