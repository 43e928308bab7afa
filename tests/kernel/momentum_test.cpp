// The update by momentum: vectors and plain loops give the same bits, whatever the numbers.
#include "kernel/momentum.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernel/simd_targets.hpp"

namespace sinew {
namespace {

std::vector<float> normals(std::size_t elements, unsigned seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(elements);
  for (auto& value : values) value = scale * normal(random);
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

TEST(Momentum, simd_and_scalar_agree_bit_for_bit) {
  for (const auto level : {SimdLevel::best, SimdLevel::avx2, SimdLevel::none}) {
    choose_simd_for_test(level);
    for (const std::size_t elements : {0, 1, 15, 16, 17, 1000, 10007})
      for (const float size : {1.0F, 1e-29F, 1e-31F}) {  // about where moments vanish, too
        auto w1 = normals(elements, 1, 1), g1 = normals(elements, 2, size),
             v1 = normals(elements, 3, size);
        auto w2 = w1, g2 = g1, v2 = v1;
        const MomentumStep step{0.9F, 0.01F * size, 0.05F, 0.3F};
        for (int i = 0; i < 3; ++i) {
          ASSERT_TRUE(update_by_momentum(w1, g1, v1, step));
          ASSERT_TRUE(update_by_momentum_scalar(w2, g2, v2, step));
          ASSERT_TRUE(same_bits(w1, w2) && same_bits(v1, v2)) << elements << ' ' << size;
          EXPECT_EQ(g1, std::vector<float>(elements));
          g1 = g2 = normals(elements, static_cast<unsigned>(10 + i), size);
        }
      }
  }
  choose_simd_for_test(SimdLevel::best);
}

TEST(Momentum, notices_what_is_not_finite_wherever_it_is) {
  constexpr std::size_t kElements = 67;
  for (std::size_t at = 0; at < kElements; ++at)
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> w(kElements), g(kElements), v(kElements);
      g[at] = bad;
      EXPECT_FALSE(update_by_momentum(w, g, v, {0.9F, 0, 0.1F, 1})) << at;
    }
  std::vector<float> w(kElements), g(kElements, std::numeric_limits<float>::max()), v(kElements);
  EXPECT_TRUE(update_by_momentum(w, g, v, {0.9F, 0, 0.1F, 1e-3F}));
}

}  // namespace
}  // namespace sinew
