// Selection by magnitude: SIMD against scalar, exact k against sorting.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernel/select.hpp"
#include "kernel/simd_targets.hpp"
#include "kernel/top_k.hpp"

namespace sinew {
namespace {

constexpr SimdLevel kLevels[] = {SimdLevel::best, SimdLevel::avx2, SimdLevel::none};

struct Items {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
  ItemRoom room(std::size_t capacity) {
    indices.assign(capacity + kSelectSlack, 0);
    values.assign(capacity + kSelectSlack, 0);
    return {indices.data(), values.data(), capacity};
  }
  void keep(std::size_t count) {
    indices.resize(count);
    values.resize(count);
  }
};

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

std::vector<float> awkward(std::size_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(elements);
  const float special[] = {0.0F,
                           -0.0F,
                           std::numeric_limits<float>::denorm_min(),
                           -1e-38F,
                           1e38F,
                           std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN(),
                           -std::numeric_limits<float>::infinity()};
  for (auto& value : values) value = random() % 16 == 0 ? special[random() % 8] : normal(random);
  return values;
}

TEST(Select, simd_and_scalar_agree_bit_for_bit) {
  for (const auto level : kLevels) {
    choose_simd_for_test(level);
    for (const std::size_t elements : {0, 1, 7, 15, 16, 17, 63, 1000, 2047, 2048, 2049, 10007})
      for (const float threshold : {0.0F, 1e-30F, 0.5F, 2.0F, 100.0F})
        for (const std::size_t offset : {0, 1}) {
          auto gradient = awkward(elements + offset, 1), kept = awkward(elements + offset, 2);
          std::vector<float> sum(elements + offset), expected_sum(elements);
          const auto g = std::span(gradient).subspan(offset), k = std::span(kept).subspan(offset);
          const auto floor = std::max(kSmallest, magnitude(threshold));
          Items expected, fused, plain;
          expected.keep(
              accumulate_select_scalar(g, k, expected_sum, floor, expected.room(elements)));
          const auto out = std::span(sum).subspan(offset);
          fused.keep(accumulate_select(g, {k}, out, floor, fused.room(elements), offset == 0));
          plain.keep(select(expected_sum, floor, plain.room(elements)));
          const auto where = fmt::format("{} elements, threshold {}", elements, threshold);
          ASSERT_TRUE(same_bits(out, expected_sum)) << where;
          ASSERT_EQ(fused.indices, expected.indices) << where;
          ASSERT_TRUE(same_bits(fused.values, expected.values)) << where;
          ASSERT_EQ(plain.indices, expected.indices) << where;
          ASSERT_TRUE(same_bits(plain.values, expected.values)) << where;
        }
  }
  choose_simd_for_test(SimdLevel::best);
}

TEST(Select, elements_that_are_gone_count_as_zero) {
  for (const auto level : kLevels) {
    choose_simd_for_test(level);
    for (const std::size_t elements : {1, 17, 2048, 4095, 4097, 10007})
      for (const std::size_t apart : {1, 3, 700}) {
        const auto gradient = awkward(elements, 1);
        const auto kept = awkward(elements, 2);
        auto cleared = kept;
        std::vector<std::uint64_t> gone(elements / 64 + 1);
        for (std::size_t i = apart / 2; i < elements; i += apart) {
          gone[i / 64] |= std::uint64_t{1} << i % 64;
          cleared[i] = 0;
        }
        std::vector<float> expected(elements);
        Items plain, fused;
        const auto floor = magnitude(0.5F);
        plain.keep(
            accumulate_select_scalar(gradient, cleared, expected, floor, plain.room(elements)));
        std::vector<float> sum(elements);
        fused.keep(
            accumulate_select(gradient, {kept, gone}, sum, floor, fused.room(elements), false));
        ASSERT_TRUE(same_bits(sum, expected)) << elements << ' ' << apart;
        ASSERT_EQ(fused.indices, plain.indices);
      }
  }
  choose_simd_for_test(SimdLevel::best);
}

// The bound comes from a sample; one that saw what is gone would lie too high.
TEST(TopK, what_is_gone_misleads_no_sample) {
  constexpr std::size_t kElements = 300000, kItems = 3000;
  std::mt19937 random(7);
  std::vector<float> gradient(kElements), kept(kElements);
  std::vector<std::uint64_t> gone(kElements / 64 + 1);
  for (std::size_t i = 0; i < kElements; ++i) {
    gradient[i] = static_cast<float>(random() % 1000 + 1);
    if (i % 20 != 0) continue;
    kept[i] = 1e6F;
    gone[i / 64] |= std::uint64_t{1} << i % 64;
  }
  TopK top(kElements, kItems);
  EXPECT_EQ(top.accumulate(gradient, {kept, gone}, kept).indices.size(), kItems);
  EXPECT_FALSE(top.scanned_again());
  EXPECT_TRUE(same_bits(kept, gradient));
}

TEST(Select, what_does_not_fit_is_counted_and_not_written) {
  const std::vector<float> ones(100000, 1.0F);
  std::vector<float> zeros(100000), sum(100000);
  for (const std::size_t capacity : {0, 1, 5000, 99999, 100000}) {
    Items items;
    auto room = items.room(capacity);
    const std::uint32_t guard = 0xABCDABCD;
    items.indices.push_back(guard);
    room.indices = items.indices.data();
    EXPECT_EQ(accumulate_select(ones, {zeros}, sum, kSmallest, room, false), 100000U);
    EXPECT_EQ(items.indices.back(), guard);
    EXPECT_EQ(sum, ones);
  }
}

TEST(Select, what_it_takes_is_zero_and_among_the_items) {
  for (const auto level : kLevels) {
    choose_simd_for_test(level);
    for (const std::size_t elements : {0, 1, 63, 64, 2047, 2049, 10007})
      for (const float least : {0.5F, 1.0F, 3.0F})
        for (const std::size_t capacity : {elements, elements / 100, std::size_t{0}}) {
          const auto values = awkward(elements, 5);
          const auto floor = magnitude(0.5F), taken = magnitude(least);
          auto left = values;
          Items expected, items;
          select(values, floor, expected.room(elements));
          const auto found = select_taking(left, floor, taken, items.room(capacity));
          ASSERT_EQ(found, select(values, floor, expected.room(elements)));
          const auto there = std::min(found, capacity);
          items.keep(there);
          expected.keep(there);
          ASSERT_EQ(items.indices, expected.indices);
          ASSERT_TRUE(same_bits(items.values, expected.values));
          for (std::size_t i = 0; i < there; ++i) {
            if (magnitude(items.values[i]) < taken) continue;
            ASSERT_TRUE(found > capacity || left[items.indices[i]] == 0.0F);
            left[items.indices[i]] = items.values[i];
          }
          ASSERT_TRUE(same_bits(left, values)) << elements << " elements, room for " << capacity;
        }
  }
  choose_simd_for_test(SimdLevel::best);
}

TEST(TopK, takes_what_is_likely_at_once) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  std::vector<float> values(1 << 20);
  for (auto& value : values) value = normal(random);
  auto left = values;
  TopK top(values.size(), 20000);
  const auto chosen = top.choose_taking(left, magnitude(3.0F));
  EXPECT_EQ(chosen.taken, magnitude(3.0F));
  EXPECT_EQ(std::count(left.begin(), left.end(), 0.0F),
            std::count_if(values.begin(), values.end(), [](float v) { return std::abs(v) >= 3; }));
}

TEST(Select, counts_magnitudes_as_one_by_one_would) {
  for (const std::size_t elements : {0U, 1U, 100U, 16391U, 40001U, 200003U})
    for (const std::size_t bins : {1U, 513U, 2049U, 4097U, 5000U})
      for (const int shift : {0, 9, 20}) {
        const auto values = awkward(elements, 7);
        const Magnitude from = shift == 20 ? 0 : magnitude(0.5F);
        std::vector<std::uint32_t> counts(bins, 3), expected(bins, 3);
        count_magnitudes(values, from, shift, counts);
        for (const float value : values)
          if (magnitude(value) >= from)
            ++expected[std::min<std::size_t>((magnitude(value) - from) >> shift, bins - 1)];
        EXPECT_EQ(counts, expected) << elements << ' ' << bins << ' ' << shift;
      }
}

TEST(Select, takes_what_lies_between_as_one_by_one_would) {
  for (const auto level : kLevels) {
    choose_simd_for_test(level);
    for (const std::size_t size : {0UL, 1UL, 15UL, 16UL, 63UL, 64UL, 65UL, 1000UL, 20011UL}) {
      const auto values = awkward(size, 5);
      for (const Magnitude low : {0U, 0x3F00'0000U, 0x3F80'0000U, kInfinity})
        for (const Magnitude width : {1U, 1U << 20, 1U << 24, 0x7FFF'FFFFU}) {
          std::vector<float> expected(size), taken(size + kBetweenSlack), same(values);
          expected.resize(take_between_scalar(values, low, width, expected.data()));
          taken.resize(take_between(values, low, width, taken.data()));
          EXPECT_TRUE(same_bits(taken, expected)) << size << ' ' << low << ' ' << width;
          // Into itself: nothing is overwritten before it is read.
          same.resize(size + kBetweenSlack);
          same.resize(take_between({same.data(), size}, low, width, same.data()));
          EXPECT_TRUE(same_bits(same, expected)) << size << ' ' << low << ' ' << width;
        }
    }
  }
  choose_simd_for_test(SimdLevel::best);
}

TEST(Select, sees_the_one_element_that_is_not_finite) {
  for (const auto level : kLevels) {
    choose_simd_for_test(level);
    std::vector<float> values(1003, 1e38F);
    EXPECT_TRUE(all_finite(values));
    for (const std::size_t at : {0, 500, 1002}) {
      values[at] = at == 500 ? std::numeric_limits<float>::quiet_NaN()
                             : -std::numeric_limits<float>::infinity();
      EXPECT_FALSE(all_finite(values)) << at;
      values[at] = 1;
    }
  }
  choose_simd_for_test(SimdLevel::best);
  EXPECT_TRUE(all_finite({}));
}

// The k largest by sorting: descending magnitude, then ascending index; zeros never.
std::vector<std::uint32_t> by_sorting(std::span<const float> values, std::size_t k) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return magnitude(values[a]) > magnitude(values[b]); });
  order.resize(std::min(k, order.size()));
  std::erase_if(order, [&](auto index) { return magnitude(values[index]) == 0; });
  std::sort(order.begin(), order.end());
  return order;
}

void expect_exact(const std::vector<float>& values, std::size_t k, std::string_view what) {
  TopK top(values.size(), k);
  const auto expected = by_sorting(values, k);
  std::vector<float> zeros(values.size());
  std::vector<float> sum(values.size());
  for (const bool fused : {false, true}) {
    const auto chosen = fused ? top.accumulate(values, {zeros}, sum) : top.choose(values);
    const std::vector<std::uint32_t> indices(chosen.indices.begin(), chosen.indices.end());
    ASSERT_EQ(indices, expected) << what << ", k " << k << " of " << values.size();
    for (std::size_t i = 0; i < indices.size(); ++i)
      ASSERT_EQ(magnitude(chosen.values[i]), magnitude(values[indices[i]]));
    ASSERT_EQ(chosen.finite, k == 0 || all_finite(values)) << what;
  }
  // Whatever is expected, the same are chosen, and of them those are 0 that are said to be.
  for (const Magnitude likely :
       {Magnitude{0}, magnitude(1e-3F), magnitude(2.0F), magnitude(3.5F), kInfinity, kUnreached}) {
    auto left = values;
    const auto chosen = top.choose_taking(left, likely);
    const std::vector<std::uint32_t> indices(chosen.indices.begin(), chosen.indices.end());
    ASSERT_EQ(indices, expected) << what << ", k " << k << " of " << values.size();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      ASSERT_EQ(magnitude(chosen.values[i]), magnitude(values[indices[i]]));
      if (magnitude(chosen.values[i]) < chosen.taken) continue;
      ASSERT_EQ(left[indices[i]], 0.0F) << what << ": said to be taken, and is not";
      left[indices[i]] = values[indices[i]];
    }
    ASSERT_TRUE(same_bits(left, values)) << what << ": taken and not said, or not chosen";
  }
}

TEST(TopK, is_exact_for_any_data) {
  std::mt19937 random(3);
  for (const std::size_t elements : {0, 1, 2, 1000, 70000, 300000})
    for (const double density : {0.0, 1e-6, 0.001, 0.02, 0.5, 1.0}) {
      const auto k = static_cast<std::size_t>(std::ceil(static_cast<double>(elements) * density));
      expect_exact(awkward(elements, 7), k, "awkward");
      expect_exact(std::vector<float>(elements, 0.0F), k, "zeros");
      expect_exact(std::vector<float>(elements, -2.5F), k, "constant");
      std::vector<float> signs(elements), few(elements), corner(elements), ramp(elements);
      for (std::size_t i = 0; i < elements; ++i) {
        signs[i] = random() % 2 == 0 ? 3.0F : -3.0F;
        few[i] = random() % 1000 == 0 ? static_cast<float>(random() % 5) : 0.0F;
        corner[i] = i * 1000 < elements ? 1000.0F + static_cast<float>(i) : 1e-3F;
        ramp[i] = static_cast<float>(i);
      }
      expect_exact(signs, k, "plus and minus");
      expect_exact(few, k, "few nonzeros");
      expect_exact(corner, k, "all mass in a corner");
      expect_exact(ramp, k, "a ramp");
    }
}

TEST(TopK, needs_no_second_scan_of_ordinary_data) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  std::vector<float> values(1 << 20);
  for (auto& value : values) value = normal(random) * std::exp(normal(random));
  for (const std::size_t k : {1, 100, 10000, 20000, 500000}) {
    TopK top(values.size(), k);
    top.choose(values);
    EXPECT_FALSE(top.scanned_again()) << k;
  }
}

TEST(TopK, kth_magnitude_is_that_of_sorting) {
  const auto values = awkward(5000, 21);
  std::vector<Magnitude> sorted;
  for (const float value : values) sorted.push_back(magnitude(value));
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  for (const std::size_t k : {1, 2, 100, 2500, 4999, 5000}) {
    const auto kth = kth_magnitude(values, k);
    EXPECT_EQ(kth.magnitude, sorted[k - 1]) << k;
    EXPECT_EQ(kth.larger,
              static_cast<std::size_t>(std::count_if(
                  sorted.begin(), sorted.end(), [&](Magnitude m) { return m > sorted[k - 1]; })));
  }
}

}  // namespace
}  // namespace sinew
