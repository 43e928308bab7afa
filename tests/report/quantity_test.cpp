// Measured, modelled and assumed figures do not mix: the compiler refuses.
#include "report/quantity.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "report/intervals.hpp"

namespace sinew::report {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class... Parts>
concept Averaged = requires(std::vector<std::common_type_t<Parts...>> parts) {
  mean_of(std::span<const std::common_type_t<Parts...>>(parts));
};

static_assert(Addable<Measured, Measured> && Comparable<Measured, Measured>);
static_assert(!Addable<Measured, Modelled> && !Addable<Measured, Assumed>);
static_assert(!Comparable<Measured, Modelled> && !Comparable<Modelled, Assumed>);
static_assert(!std::is_convertible_v<Modelled, Measured> &&
              !std::is_convertible_v<Assumed, Measured> &&
              !std::is_convertible_v<double, Measured>);
static_assert(std::is_same_v<decltype(over(Measured{}, Assumed{})), Modelled>);
static_assert(std::is_same_v<decltype(over(Measured{}, Measured{})), Measured>);

TEST(Quantity, a_figure_keeps_its_label) {
  EXPECT_EQ(Figure(Measured{2}).source, Source::measured);
  EXPECT_EQ(Figure(Modelled{2}).source, Source::modelled);
  EXPECT_EQ(Figure(Assumed{2}).source, Source::assumed);
  EXPECT_EQ(name(Source::assumed), "assumed");
}

TEST(Quantity, repeats_have_a_mean_and_an_interval) {
  const std::vector<Measured> repeats{{9}, {10}, {11}};
  const auto mean = mean_of<Source::measured>(repeats);
  EXPECT_DOUBLE_EQ(mean.mean.value, 10);
  EXPECT_NEAR(mean.error.value, 4.303 / std::sqrt(3.0), 1e-3);
  EXPECT_EQ(mean.repeats, 3U);
  const std::vector<Measured> one{{5}};
  EXPECT_EQ(mean_of<Source::measured>(one).error.value, 0) << "one repeat tells no interval";
}

TEST(Quantity, student_t_falls_to_the_normal_distribution) {
  EXPECT_NEAR(student_t95(1), 12.706, 1e-3);
  EXPECT_NEAR(student_t95(30), 2.042, 2e-3);
  EXPECT_NEAR(student_t95(1000), 1.962, 1e-3);
}

double length(const Intervals& intervals) { return length_ns(intervals); }

TEST(Intervals, are_joined_cut_and_measured) {
  const auto a = joined({{10, 20}, {15, 30}, {40, 50}, {50, 60}, {70, 70}});
  ASSERT_EQ(a.size(), 2U);
  EXPECT_DOUBLE_EQ(length(a), 40);
  const auto b = joined({{0, 12}, {25, 45}});
  EXPECT_DOUBLE_EQ(length(common(a, b)), 2 + 5 + 5);
  EXPECT_DOUBLE_EQ(length(minus(a, b)), 40 - 12);
  EXPECT_DOUBLE_EQ(length(joined(a, b)), 40 + 32 - 12);
  EXPECT_DOUBLE_EQ(length(minus(a, a)), 0);
  const Interval windows[] = {{0, 15}, {15, 45}, {45, 100}};
  EXPECT_EQ(covered_ns(a, windows), (std::vector<double>{5, 20, 15}));
}

}  // namespace
}  // namespace sinew::report
