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

TEST(Optimizer, takes_sparse_parts_as_it_takes_the_whole) {
  constexpr std::size_t kMany = 5000, kFirst = 1700;  // blocks that end within a part
  for (const char* kind : {"sgd", "adam"}) {
    Optimizer dense({.kind = kind, .weight_decay = 0.01F}, kMany);
    Optimizer sparse({.kind = kind, .weight_decay = 0.01F}, kMany);
    std::vector<float> w1(kMany, 1.0F), w2(w1);
    for (int step = 0; step < 4; ++step) {
      std::vector<std::uint32_t> indices;
      std::vector<float> values, whole(kMany), head(kFirst);
      for (std::size_t i = 0; i < kFirst; ++i) whole[i] = head[i] = 0.01F * static_cast<float>(i);
      for (std::uint32_t i = 3; i < kMany - kFirst; i += 37) {
        indices.push_back(i);
        values.push_back(0.5F + static_cast<float>(i + static_cast<std::uint32_t>(step)));
        whole[kFirst + i] = values.back();
      }
      const GradientPart parts[] = {
          {.whole = head},
          {.first = kFirst, .elements = kMany - kFirst, .items = {indices, values}}};
      std::vector<float> written(kMany, 9.0F);
      write_parts(parts, written);
      EXPECT_EQ(written, whole);
      EXPECT_NEAR(norm_of(parts), norm_of(whole), 1e-9 * norm_of(whole));
      ASSERT_TRUE(dense.step(w1, whole, 0.1F, 0.5F));
      ASSERT_TRUE(sparse.step(w2, parts, 0.1F, 0.5F));
      ASSERT_EQ(w1, w2);
      EXPECT_EQ(head, std::vector<float>(kFirst));
    }
    std::vector<float> bad{std::numeric_limits<float>::quiet_NaN()};
    const std::uint32_t last[] = {kMany - 1};
    const GradientPart part{.elements = kMany, .items = {last, bad}};
    EXPECT_FALSE(sparse.step(w2, std::span(&part, 1), 0.1F, 1));
  }
}

TEST(Optimizer, forgets_moments_before_they_are_denormal) {
  for (const char* kind : {"sgd", "adam"}) {
    Optimizer optimizer({.kind = kind, .beta2 = 0.9F}, kElements);
    std::vector<float> w(kElements, 1.0F), g(kElements, 1e-3F);
    for (int step = 0; step < 1000; ++step) ASSERT_TRUE(optimizer.step(w, g, 0.1F, 1));
    State state;
    optimizer.save(state);
    for (const char* moment : {"optimizer/first", "optimizer/second"})
      for (const float value : state.get<float>(moment)) ASSERT_EQ(value, 0) << kind << moment;
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
  EXPECT_EQ(norm_of(std::span<const float>()), 0);
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
