// Products for low-rank approximation, against sums in float64.
#include "kernel/low_rank.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace sinew {
namespace {

std::vector<float> normal(std::size_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(elements);
  for (float& value : values) value = distribution(random);
  return values;
}

struct Case {
  MatrixShape shape;
  std::size_t vectors;
};
const Case kCases[] = {{{1, 1}, 1}, {{3, 5}, 2}, {{17, 33}, 3}, {{64, 100}, 4}, {{100, 7}, 7}};

TEST(LowRank, products_equal_sums_in_float64) {
  for (const auto& [shape, vectors] : kCases) {
    const auto matrix = normal(shape.rows * shape.columns, 1);
    const auto right = normal(vectors * shape.columns, 2), left = normal(vectors * shape.rows, 3);
    std::vector<float> by_right(vectors * shape.rows), by_left(vectors * shape.columns);
    std::vector<float> product(matrix.size());
    multiply(matrix, shape, right, by_right);
    multiply_transposed(matrix, shape, left, by_left);
    outer_product(left, right, shape, product);
    for (std::size_t v = 0; v < vectors; ++v) {
      for (std::size_t i = 0; i < shape.rows; ++i) {
        double sum = 0;
        for (std::size_t j = 0; j < shape.columns; ++j)
          sum += static_cast<double>(matrix[i * shape.columns + j]) * right[v * shape.columns + j];
        EXPECT_NEAR(by_right[v * shape.rows + i], sum, 1e-4);
      }
      for (std::size_t j = 0; j < shape.columns; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < shape.rows; ++i)
          sum += static_cast<double>(matrix[i * shape.columns + j]) * left[v * shape.rows + i];
        EXPECT_NEAR(by_left[v * shape.columns + j], sum, 1e-4);
      }
    }
    for (std::size_t i = 0; i < shape.rows; ++i)
      for (std::size_t j = 0; j < shape.columns; ++j) {
        double sum = 0;
        for (std::size_t v = 0; v < vectors; ++v)
          sum += static_cast<double>(left[v * shape.rows + i]) * right[v * shape.columns + j];
        EXPECT_NEAR(product[i * shape.columns + j], sum, 1e-4);
      }
  }
}

double product(const std::vector<float>& vectors, std::size_t length, std::size_t a,
               std::size_t b) {
  double sum = 0;
  for (std::size_t i = 0; i < length; ++i)
    sum += static_cast<double>(vectors[a * length + i]) * vectors[b * length + i];
  return sum;
}

TEST(LowRank, orthonormal_vectors_are_so_even_if_they_were_nearly_parallel) {
  constexpr std::size_t kLength = 500, kVectors = 6;
  auto vectors = normal(kLength * kVectors, 5);
  for (std::size_t v = 1; v < kVectors; ++v)
    for (std::size_t i = 0; i < kLength; ++i)
      vectors[v * kLength + i] = vectors[i] + 1e-3F * vectors[v * kLength + i];
  orthonormalize(vectors, kLength);
  for (std::size_t a = 0; a < kVectors; ++a)
    for (std::size_t b = 0; b <= a; ++b)
      EXPECT_NEAR(product(vectors, kLength, a, b), a == b ? 1 : 0, 1e-4) << a << " " << b;
}

TEST(LowRank, vectors_that_depend_on_others_become_zero) {
  constexpr std::size_t kLength = 50;
  auto vectors = normal(kLength, 6);
  vectors.resize(3 * kLength);  // the third is zero from the start
  for (std::size_t i = 0; i < kLength; ++i) vectors[kLength + i] = 3 * vectors[i];
  orthonormalize(vectors, kLength);
  EXPECT_NEAR(product(vectors, kLength, 0, 0), 1, 1e-6);
  EXPECT_EQ(product(vectors, kLength, 1, 1), 0);
  EXPECT_EQ(product(vectors, kLength, 2, 2), 0);
}

}  // namespace
}  // namespace sinew
