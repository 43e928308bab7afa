// Sparse lists into dense vectors and out of blocks of sums, against the plain loops.
#include "kernel/sparse.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
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

Items every(std::size_t elements, std::size_t apart) {
  std::mt19937 random(3);
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

TEST_P(Sparse, touched_elements_are_taken_in_order_zeros_too) {
  for (const std::size_t apart : {1UL, 20UL, 3000UL}) {
    const auto items = every(TouchedBlock::kElements, apart);
    auto block = std::make_unique<TouchedBlock>();
    for (std::size_t i = 0; i < items.indices.size(); ++i) {
      block->add(items.indices[i], items.values[i]);
      if (i % 5 == 0) block->add(items.indices[i], -items.values[i]);
    }
    auto same = std::make_unique<TouchedBlock>(*block);
    std::vector<std::uint32_t> indices(items.indices.size() + 3 + kSelectSlack), expected = indices;
    std::vector<float> values(indices.size()), expected_values = values;
    const auto count = take_touched(*block, 70000, {indices.data(), values.data(), 0}, 3);
    ASSERT_EQ(count, items.indices.size() + 3);
    ASSERT_EQ(take_touched_scalar(*same, 70000, {expected.data(), expected_values.data(), 0}, 3),
              count);
    indices.resize(count);
    values.resize(count);
    expected.resize(count);
    expected_values.resize(count);
    EXPECT_EQ(indices, expected);
    EXPECT_EQ(values, expected_values);
    EXPECT_EQ(std::memcmp(block.get(), std::make_unique<TouchedBlock>().get(), sizeof *block), 0);
    EXPECT_EQ(std::memcmp(same.get(), block.get(), sizeof *block), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Sparse,
                         testing::Values(SimdLevel::best, SimdLevel::avx2, SimdLevel::none));

}  // namespace
}  // namespace sinew
