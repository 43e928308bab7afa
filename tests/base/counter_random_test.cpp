// Randomness by counter: permutations are ones, and all of their values are equally likely.
#include "base/counter_random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace sinew {
namespace {

TEST(CounterRandom, a_permutation_has_every_value_once) {
  for (const std::uint32_t elements : {1U, 2U, 3U, 4U, 5U, 17U, 100U, 1000U, 65537U}) {
    const Permutation permutation(elements, 7);
    std::vector<bool> seen(elements);
    for (std::uint32_t i = 0; i < elements; ++i) {
      const auto value = permutation(i);
      ASSERT_LT(value, elements);
      EXPECT_FALSE(seen[value]) << value << " twice of " << elements;
      seen[value] = true;
    }
  }
}

TEST(CounterRandom, a_permutation_works_up_to_32_bits) {
  const Permutation permutation(0xFFFFFFFF, 3);
  std::uint32_t before = permutation(0);
  for (std::uint32_t i = 1; i < 1000; ++i) {
    const auto value = permutation(i);
    EXPECT_LT(value, 0xFFFFFFFF);
    EXPECT_NE(value, before);
    before = value;
  }
}

// Over many keys every value comes first, second, ... as often as any other: chi-square of 997
// values, 99 degrees of freedom after folding, stays within 5 standard deviations of its mean.
TEST(CounterRandom, the_first_values_of_a_permutation_are_uniform) {
  constexpr std::uint32_t kElements = 1000, kBins = 100, kKeys = 4000, kItems = 5;
  std::vector<double> counts(kBins);
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    const Permutation permutation(kElements, random_key(1, key));
    for (std::uint32_t i = 0; i < kItems; ++i) counts[permutation(i) / (kElements / kBins)] += 1;
  }
  const double expected = static_cast<double>(kKeys) * kItems / kBins;
  double chi = 0;
  for (const double count : counts) chi += (count - expected) * (count - expected) / expected;
  EXPECT_NEAR(chi, kBins - 1, 5 * std::sqrt(2.0 * (kBins - 1)));
}

TEST(CounterRandom, units_are_uniform_and_below_one) {
  double sum = 0, squares = 0;
  constexpr int kDraws = 100000;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double unit = random_unit(random_key(4, 5, 6), i);
    ASSERT_GE(unit, 0);
    ASSERT_LT(unit, 1);
    sum += unit;
    squares += unit * unit;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.005);
}

}  // namespace
}  // namespace sinew
