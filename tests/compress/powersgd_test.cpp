// PowerSGD: as near to the matrix as its best approximation of that rank, in two allreduces.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/scheme_run.hpp"

namespace sinew {
namespace {

using test::run_scheme;
using Matrix = std::vector<double>;  // square, row-major

// Eigenvalues of a symmetric matrix by rotations (Jacobi), largest first.
std::vector<double> eigenvalues(Matrix a, std::size_t n) {
  for (int sweep = 0; sweep < 30; ++sweep)
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        if (std::abs(a[p * n + q]) < 1e-300) continue;
        const double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
        const double t = std::copysign(1, theta) / (std::abs(theta) + std::hypot(theta, 1));
        const double c = 1 / std::hypot(t, 1), s = t * c;
        for (std::size_t k = 0; k < n; ++k) {
          const double x = a[k * n + p], y = a[k * n + q];
          a[k * n + p] = c * x - s * y;
          a[k * n + q] = s * x + c * y;
        }
        for (std::size_t k = 0; k < n; ++k) {
          const double x = a[p * n + k], y = a[q * n + k];
          a[p * n + k] = c * x - s * y;
          a[q * n + k] = s * x + c * y;
        }
      }
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(a[i * n + i]);
  std::sort(values.rbegin(), values.rend());
  return values;
}

// |M - best of rank q| / |M|: what lies outside the q largest singular values.
double least_error(const std::vector<double>& m, std::size_t rows, std::size_t columns,
                   std::size_t rank) {
  Matrix squares(columns * columns);
  for (std::size_t i = 0; i < columns; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      for (std::size_t r = 0; r < rows; ++r)
        squares[i * columns + j] += m[r * columns + i] * m[r * columns + j];
  const auto values = eigenvalues(std::move(squares), columns);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(rank);
  return std::sqrt(std::accumulate(middle, values.end(), 0.0) /
                   std::accumulate(values.begin(), values.end(), 0.0));
}

// What comes in is the same matrix every step: the gradient is what feedback lacks of it.
struct Steady {
  std::size_t rows, columns;
  int size;
  double rank;

  [[nodiscard]] std::vector<float> matrix(int of_rank) const {
    // Singular values that fall off, in no simple directions.
    std::vector<float> m(rows * columns);
    for (std::size_t v = 0; v < 12; ++v) {
      const auto left = test::gradient(rows, of_rank, v),
                 right = test::gradient(columns, 9, v + 50);
      for (std::size_t i = 0; i < m.size(); ++i)
        m[i] += left[i / columns] * right[i % columns] / static_cast<float>(1 << v);
    }
    return m;
  }

  // Relative error of the last result.
  [[nodiscard]] double error(int steps, std::vector<double>& mean) const {
    std::vector<std::vector<float>> kept(static_cast<std::size_t>(size),
                                         std::vector<float>(rows * columns));
    double result = 0;
    (void)test::on_ranks(size, [&](Communicator& communicator) -> std::string {
      const auto me = static_cast<std::size_t>(communicator.rank());
      Compressor compressor(communicator, find_scheme("powersgd"),
                            {{"w", {rows, columns}}, {"b", {1}}},
                            {.parameters = {{"rank", rank}, {"least_gain", 1}}});
      const auto m = matrix(communicator.rank());
      std::vector<float> gradient;
      for (int step = 0; step < steps; ++step) {
        gradient = m;
        for (std::size_t i = 0; i < m.size(); ++i) gradient[i] -= kept[me][i];
        gradient.push_back(1);
        const auto& report = compressor.allreduce(gradient);
        EXPECT_EQ(report.bytes.size(), 2U);  // two allreduces only
        const auto rest = compressor.feedback().kept();
        kept[me].assign(rest.begin(), rest.end() - 1);
        EXPECT_EQ(gradient.back(), 1);  // a tensor of one dimension goes as it is
        EXPECT_EQ(rest.back(), 0);
      }
      if (me == 0) {
        double apart = 0, all = 0;
        for (std::size_t i = 0; i < mean.size(); ++i) {
          apart += (gradient[i] - mean[i]) * (gradient[i] - mean[i]);
          all += mean[i] * mean[i];
        }
        result = std::sqrt(apart / all);
      }
      return {};
    });
    return result;
  }
};

TEST(PowerSgd, is_within_5_per_cent_of_the_best_rank_q_after_a_warm_start) {
  for (const int size : {1, 2, 3, 4})
    for (const double rank : {1.0, 2.0, 4.0}) {
      const Steady steady{40, 24, size, rank};
      std::vector<double> mean(40 * 24);
      for (int r = 0; r < size; ++r) {
        const auto m = steady.matrix(r);
        for (std::size_t i = 0; i < m.size(); ++i) mean[i] += m[i] / static_cast<double>(size);
      }
      const auto best = least_error(mean, 40, 24, static_cast<std::size_t>(rank));
      EXPECT_LE(steady.error(12, mean), best * 1.05) << size << " ranks, rank " << rank;
    }
}

TEST(PowerSgd, what_is_sent_and_what_is_kept_is_what_came_in) {
  for (const int size : {1, 2, 3, 5, 8}) {
    const auto steps =
        run_scheme({.scheme = "powersgd",
                    .layout = {{"conv", {16, 8, 3, 3}}, {"bias", {16}}, {"fc", {50, 30}}},
                    .size = size,
                    .steps = 10});
    EXPECT_TRUE(test::ranks_agree(steps));
    for (const auto& ranks : steps) EXPECT_LT(test::lost_share(ranks), 1e-5) << size;
  }
}

// Bytes follow from the shapes alone: a matrix is its first dimension by the others.
TEST(PowerSgd, matrices_are_laid_out_by_shape) {
  const auto steps = run_scheme({.scheme = "powersgd",
                                 .layout = {{"conv", {16, 8, 3, 3}},  // 16 x 72: 2 (16 + 72)
                                            {"small", {3, 3}},        // would not shrink by half
                                            {"bias", {16}}},
                                 .options = {.parameters = {{"rank", 2}}}});
  EXPECT_EQ(steps[0][0].report.items, 2U * (16 + 72) + 9 + 16);
}

TEST(PowerSgd, a_matrix_of_low_rank_arrives_whole) {
  const auto left = test::gradient(20, 0, 1), right = test::gradient(30, 0, 2);
  const auto steps = run_scheme({.scheme = "powersgd",
                                 .layout = {{"w", {20, 30}}},
                                 .options = {.parameters = {{"rank", 2}}},
                                 .size = 3,
                                 .steps = 2,
                                 .gradient = [&](int, int) {
                                   std::vector<float> m;
                                   for (const float a : left)
                                     for (const float b : right) m.push_back(a * b);
                                   return m;
                                 }});
  for (const auto& ranks : steps)
    for (std::size_t i = 0; i < 600; ++i)
      EXPECT_NEAR(ranks[0].result[i], left[i / 30] * right[i % 30], 1e-4);
}

// A step of zeros leaves no direction to begin with; the next one must find its own.
TEST(PowerSgd, recovers_after_a_gradient_of_zeros) {
  const auto steps = run_scheme({.scheme = "powersgd",
                                 .layout = {{"w", {30, 20}}},
                                 .steps = 3,
                                 .gradient = [](int rank, int step) {
                                   if (step == 1) return std::vector<float>(600);
                                   return test::gradient(600, rank, 1, step == 0 ? 0.0F : 1.0F);
                                 }});
  double size = 0;
  for (const float value : steps[2][0].result) size += std::abs(value);
  EXPECT_GT(size, 1);
}

}  // namespace
}  // namespace sinew
