// Fits against curves that are known, under noise and outliers.
#include "model/fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace sinew {
namespace {

std::vector<double> sizes() {
  std::vector<double> all;
  for (double bytes = 8; bytes < 4e7; bytes *= 1.5) all.push_back(std::round(bytes));
  return all;
}

double time(const Curve& curve, double bytes) {
  const auto cost = curve.at(bytes);
  return static_cast<double>(cost.alpha + cost.beta);
}

TEST(Fit, exact_data_gives_the_curve_back) {
  const Curve curve({{4096, 4e5, 500}, {1 << 20, 4e6, 60}, {0, 3e7, 200}});
  std::vector<Sample> samples;
  for (const double bytes : sizes()) samples.push_back({bytes, time(curve, bytes)});
  const auto fitted = fit_curve(samples);
  ASSERT_EQ(fitted.segments().size(), 3U);
  for (const auto& sample : samples) EXPECT_NEAR(time(fitted, sample.bytes) / sample.ps, 1, 1e-5);
  EXPECT_LT(left_out_error(samples), 1e-5);
}

// 5 % noise and a tenth of outliers, as on a machine with other work.
TEST(Fit, noise_and_outliers_move_it_little) {
  const Curve curve({{8192, 5e5, 400}, {0, 8e6, 50}});
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U}) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(1, 0.05);
    std::vector<Sample> samples;
    for (const double bytes : sizes()) {
      const bool outlier = random() % 10 == 0;
      samples.push_back({bytes, time(curve, bytes) * noise(random) * (outlier ? 4 : 1)});
    }
    const auto segments = fit_curve(samples).segments();
    ASSERT_GE(segments.size(), 2U) << seed;
    EXPECT_NEAR(segments.front().alpha_ps / 5e5, 1, 0.1) << seed;
    EXPECT_NEAR(segments.back().byte_ps / 50, 1, 0.1) << seed;
    const auto closest = std::min_element(
        segments.begin(), segments.end(), [](const CurvePart& a, const CurvePart& b) {
          return std::abs(std::log(a.most_bytes / 8192)) < std::abs(std::log(b.most_bytes / 8192));
        });
    EXPECT_LE(std::abs(std::log(closest->most_bytes / 8192)), std::log(2.25)) << seed;
  }
}

TEST(Fit, parts_are_never_negative_and_few_points_are_enough) {
  const std::vector<Sample> falling{{8, 1000}, {64, 900}, {512, 800}, {4096, 10}};
  const auto fitted = fit_curve(falling);
  for (const auto& segment : fitted.segments()) {
    EXPECT_GE(segment.alpha_ps, 0);
    EXPECT_GT(segment.byte_ps, 0);
  }
  EXPECT_TRUE(fit_curve({}).is_free());
  const std::vector<Sample> one{{100, 5000}};
  EXPECT_NEAR(time(fit_curve(one), 100), 5000, 1);
  EXPECT_EQ(left_out_error(one), 0);
}

}  // namespace
}  // namespace sinew
