// Updates against the textbook in double precision, and what must not pass.
#include "train/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <sinew/error.hpp>
#include "train/synthetic.hpp"

namespace sinew {
namespace {

constexpr std::size_t kElements = 37;

std::vector<float> normals(std::uint64_t key) {
  std::vector<float> values(kElements);
  for (std::size_t i = 0; i < kElements; ++i) values[i] = random_normal(key, i);
  return values;
}

TEST(Optimizer, sgd_is_momentum_and_decay_by_the_book) {
  Optimizer optimizer({.kind = "sgd", .momentum = 0.8F, .weight_decay = 0.01F}, kElements);
  auto w = normals(1);
  std::vector<double> expected(w.begin(), w.end()), v(kElements);
  for (std::uint64_t step = 0; step < 5; ++step) {
    auto g = normals(10 + step);
    for (std::size_t i = 0; i < kElements; ++i) {
      v[i] = 0.8 * v[i] + 0.5 * g[i] + 0.01 * expected[i];
      expected[i] -= 0.1 * v[i];
    }
    EXPECT_TRUE(optimizer.step(w, g, 0.1F, 0.5F));
    EXPECT_EQ(g, std::vector<float>(kElements));
  }
  for (std::size_t i = 0; i < kElements; ++i) EXPECT_NEAR(w[i], expected[i], 1e-5);
}

TEST(Optimizer, adam_corrects_its_moments_by_the_book) {
  Optimizer optimizer({.kind = "adam"}, kElements);
  auto w = normals(1);
  std::vector<double> expected(w.begin(), w.end()), m(kElements), v(kElements);
  for (int step = 1; step <= 5; ++step) {
    auto g = normals(20 + static_cast<std::uint64_t>(step));
    for (std::size_t i = 0; i < kElements; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
      expected[i] -= 0.01 * (m[i] / (1 - std::pow(0.9, step))) /
                     (std::sqrt(v[i] / (1 - std::pow(0.999, step))) + 1e-8);
    }
    EXPECT_TRUE(optimizer.step(w, g, 0.01F, 1));
  }
  for (std::size_t i = 0; i < kElements; ++i) EXPECT_NEAR(w[i], expected[i], 1e-5);
}

TEST(Optimizer, goes_on_from_what_it_saved_bit_for_bit) {
  for (const auto* kind : {"sgd", "adam"}) {
    Optimizer first({.kind = kind}, kElements), second({.kind = kind}, kElements);
    auto w = normals(1);
    auto g = normals(2);
    first.step(w, g, 0.1F, 1);
    State state;
    first.save(state);
    second.load(state);
    auto w2 = w;
    auto g1 = normals(3), g2 = g1;
    first.step(w, g1, 0.1F, 1);
    second.step(w2, g2, 0.1F, 1);
    EXPECT_EQ(w, w2) << kind;
    Optimizer other({.kind = kind}, kElements + 1);
    EXPECT_THROW(other.load(state), Error);
  }
}

TEST(Optimizer, notices_every_nan_and_infinity) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -INFINITY, INFINITY})
    for (const auto* kind : {"sgd", "adam"})
      for (std::size_t at = 0; at < kElements; ++at) {
        Optimizer optimizer({.kind = kind}, kElements);
        auto w = normals(1), g = normals(2);
        g[at] = bad;
        ASSERT_FALSE(optimizer.step(w, g, 0.1F, 1));
      }
}

TEST(Optimizer, refuses_what_it_does_not_know) {
  EXPECT_THROW(Optimizer({.kind = "sdg"}, 1), Error);
  EXPECT_THROW(Optimizer({.momentum = 1.5F}, 1), Error);
}

TEST(Norm, is_that_of_the_book) {
  auto values = normals(4);
  double sum = 0;
  for (const auto value : values) sum += double{value} * value;
  EXPECT_NEAR(norm_of(values), std::sqrt(sum), 1e-9);
  EXPECT_EQ(norm_of({}), 0);
}

TEST(Rate, follows_its_schedule) {
  EXPECT_EQ(rate_at({.rate = 0.5}, 1000, 0), 0.5);
  EXPECT_EQ(rate_at({.rate = 0.5, .warmup = 10}, 4, 0), 0.25);
  EXPECT_NEAR(rate_at({.rate = 1, .schedule = "cosine"}, 50, 100), 0.5, 1e-12);
  EXPECT_NEAR(rate_at({.rate = 1, .schedule = "cosine"}, 100, 100), 0, 1e-12);
  EXPECT_NEAR(rate_at({.rate = 1, .schedule = "step:10:0.5"}, 25, 0), 0.25, 1e-12);
  for (const auto* schedule : {"cosin", "step:10", "step:0:1", "step:x:1", "step:5:-1"})
    EXPECT_THROW((void)rate_at({.schedule = schedule}, 0, 1), Error) << schedule;
}

}  // namespace
}  // namespace sinew
