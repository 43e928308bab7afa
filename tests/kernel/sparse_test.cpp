// Sparse lists into dense vectors and out of blocks of sums, against the plain loops.
#include "kernel/sparse.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <vector>

#include "kernel/simd_targets.hpp"

namespace sinew {
namespace {

class Sparse : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { choose_simd_for_test(GetParam()); }
  void TearDown() override { choose_simd_for_test(SimdLevel::best); }
};

struct Items {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

Items every(std::size_t elements, std::size_t apart, unsigned seed = 3) {
  std::mt19937 random(seed);
  Items items;
  for (std::size_t i = random() % (2 * apart); i < elements; i += 1 + random() % (2 * apart)) {
    items.indices.push_back(static_cast<std::uint32_t>(i));
    items.values.push_back(static_cast<float>(random() % 1000) - 500);
  }
  return items;
}

TEST_P(Sparse, vectors_are_written_whole_and_nothing_beside_them) {
  constexpr std::size_t kStreams = (std::size_t{1} << 20) + 77;
  for (const std::size_t elements : {0UL, 1UL, 5UL, 2047UL, 2048UL, 2049UL, 10000UL, kStreams})
    for (const std::size_t shift : {0UL, 1UL, 7UL, 15UL})
      for (const std::size_t apart : {1UL, 50UL, 5000UL}) {
        const auto items = every(elements, apart);
        std::vector<float> memory(elements + shift + 1, 7), expected(elements);
        write_sparse({memory.data() + shift, elements}, {items.indices, items.values}, 3);
        write_sparse_scalar(expected, {items.indices, items.values}, 3);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), memory.data() + shift))
            << elements << ' ' << shift << ' ' << apart;
        ASSERT_EQ(memory.back(), 7);
        ASSERT_TRUE(std::all_of(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(shift),
                                [](float value) { return value == 7; }));
      }
}

// A sum may cancel, and is an item all the same.
TEST_P(Sparse, a_zero_is_an_item_and_has_no_sign) {
  const std::uint32_t indices[] = {1, 5, 70, 71};
  const float values[] = {0.0F, -0.0F, 3.0F, -1e-45F};
  std::vector<float> vector(100, 9);
  std::uint64_t bits[2] = {};
  const std::uint32_t others[] = {0, 1, 5, 6, 70, 71, 99};
  write_sparse(vector, {indices, values}, 4, {others, bits});
  EXPECT_EQ(bits[0], 0b10'0010U);
  EXPECT_EQ(bits[1], 0b1100'0000U);
  for (const auto i : {0U, 1U, 5U, 71U}) {
    EXPECT_EQ(vector[i], 0);
    EXPECT_FALSE(std::signbit(vector[i])) << i;
  }
  EXPECT_EQ(vector[70], 0.75F);
}

TEST_P(Sparse, indices_in_common_are_marked_all_words_and_none_beside_them) {
  constexpr std::uint64_t kOld = 0x5A5A'5A5A'5A5A'5A5A;
  for (const std::size_t elements : {0UL, 1UL, 63UL, 64UL, 2049UL, 4095UL, 100001UL})
    for (const std::size_t shift : {0UL, 1UL, 15UL})
      for (const std::size_t apart : {1UL, 3UL, 50UL}) {
        const auto items = every(elements, apart, 3), others = every(elements, 2, 4);
        std::vector<float> memory(elements + shift), expected(elements);
        std::vector<std::uint64_t> bits((elements + 63) / 64 + 1, kOld), expected_bits = bits;
        const auto asked = [&](auto& words) {
          return Common{others.indices, std::span(words).first(words.size() - 1)};
        };
        write_sparse({memory.data() + shift, elements}, {items.indices, items.values}, 1,
                     asked(bits));
        write_sparse_scalar(expected, {items.indices, items.values}, 1, asked(expected_bits));
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), memory.data() + shift));
        ASSERT_EQ(bits, expected_bits) << elements << ' ' << shift << ' ' << apart;
        ASSERT_EQ(bits.back(), kOld);
        std::vector<std::uint32_t> both, marked;
        std::set_intersection(items.indices.begin(), items.indices.end(), others.indices.begin(),
                              others.indices.end(), std::back_inserter(both));
        for (std::uint32_t i = 0; i < elements; ++i)
          if ((bits[i / 64] >> i % 64 & 1) != 0) marked.push_back(i);
        ASSERT_EQ(marked, both);
      }
}

TEST_P(Sparse, lists_add_up_in_their_order_and_a_sum_of_zero_stays) {
  for (const std::size_t elements : {0UL, 1UL, 64UL, 8191UL, 8193UL, 100000UL})
    for (const std::size_t apart : {1UL, 20UL, 3000UL})
      for (const std::size_t count : {0UL, 1UL, 2UL, 5UL}) {
        std::vector<Items> items;
        for (unsigned list = 0; list < count; ++list) {
          items.push_back(every(elements, apart, list));
          // Sums depend on their order, and some are zero.
          for (auto& value : items.back().values) value *= list == 1 ? 1e7F : 1.1F;
          if (list == 2) {
            items[2] = items[0];
            for (auto& value : items[2].values) value = -value;
          }
        }
        std::vector<SparseItems> lists(items.size());
        std::size_t all = 0;
        for (const auto& list : items) all += list.indices.size();
        const auto add = [&](auto function, Items& sums) {
          for (std::size_t i = 0; i < items.size(); ++i)
            lists[i] = {items[i].indices, items[i].values};
          sums = {std::vector<std::uint32_t>(all), std::vector<float>(all)};
          const auto found = function(lists, {sums.indices.data(), sums.values.data(), all});
          sums.indices.resize(found);
          sums.values.resize(found);
          for (const auto& list : lists) ASSERT_TRUE(list.indices.empty());
        };
        Items sums, expected;
        add(add_sparse, sums);
        add(add_sparse_scalar, expected);
        ASSERT_EQ(sums.indices, expected.indices) << elements << ' ' << apart << ' ' << count;
        ASSERT_EQ(sums.values, expected.values) << elements << ' ' << apart << ' ' << count;
        std::vector<float> dense(elements);
        for (const auto& list : items)
          for (std::size_t i = 0; i < list.indices.size(); ++i)
            dense[list.indices[i]] += list.values[i];
        for (std::size_t i = 0; i < sums.indices.size(); ++i)
          ASSERT_EQ(dense[sums.indices[i]], sums.values[i]);
      }
}

INSTANTIATE_TEST_SUITE_P(Levels, Sparse,
                         testing::Values(SimdLevel::best, SimdLevel::avx2, SimdLevel::none));

}  // namespace
}  // namespace sinew
