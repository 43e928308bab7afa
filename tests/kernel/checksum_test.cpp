// The checksum against the plain loop, on every instruction set; and that it notices what happens
// to bytes on their way.
#include "kernel/checksum.hpp"

#include <gtest/gtest.h>

#include <set>

#include "kernel/kernel_data.hpp"

namespace sinew::test {
namespace {

class ChecksumTest : public testing::Test {
 protected:
  ~ChecksumTest() override { choose_simd_for_test(SimdLevel::best); }
};

std::uint64_t sum(const std::vector<std::byte>& bytes) { return checksum(bytes); }

// So that two machines agree, whatever they are.
TEST_F(ChecksumTest, is_what_it_was_on_every_instruction_set) {
  const std::vector<std::byte> pool = mixed_elements(DType::u8, 3'000);
  std::vector<std::byte> counted(1'000);
  for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<std::byte>(i * 7);
  for (const SimdLevel level : kSimdLevels) {
    choose_simd_for_test(level);
    for (std::size_t bytes = 0; bytes < 2'000; bytes += bytes < 300 ? 1 : 61)
      for (const std::size_t offset : {0, 1, 9}) {
        const auto part = std::span(pool).subspan(offset, bytes);
        ASSERT_EQ(checksum(part), checksum_scalar(part)) << bytes << " bytes, offset " << offset;
      }
    EXPECT_EQ(sum({}), 0x3ced40696f69facdU);
    EXPECT_EQ(sum(counted), 0xdb38ca90d2d48b6fU);
  }
}

TEST_F(ChecksumTest, notices_every_flipped_bit) {
  auto bytes = mixed_elements(DType::u8, 700);
  const auto before = sum(bytes);
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    const auto bit = std::byte{1} << (i % 8);
    bytes[i / 8] ^= bit;
    ASSERT_NE(sum(bytes), before) << i;
    bytes[i / 8] ^= bit;
  }
  EXPECT_EQ(sum(bytes), before);
}

// What a wrong offset or length of a piece does: equal bytes elsewhere, more or fewer zeros.
TEST_F(ChecksumTest, notices_blocks_that_moved_and_zeros_that_came_or_went) {
  std::set<std::uint64_t> seen;
  std::vector<std::byte> zeros;
  for (; zeros.size() < 600; zeros.emplace_back()) EXPECT_TRUE(seen.insert(sum(zeros)).second);

  const auto bytes = mixed_elements(DType::u8, 1'024);
  const auto before = sum(bytes);
  for (const std::size_t block : {1, 4, 16, 64, 128, 256})
    for (std::size_t a = 0; a < bytes.size(); a += block)
      for (std::size_t b = a + block; b < bytes.size(); b += block) {
        auto moved = bytes;
        std::swap_ranges(&moved[a], &moved[a] + block, &moved[b]);
        ASSERT_EQ(sum(moved) == before, moved == bytes) << block << " " << a << " " << b;
      }
}

// Few changes, near each other: what is most likely to cancel in a sum that mixes too little.
TEST_F(ChecksumTest, notices_a_few_changed_bytes_anywhere) {
  std::mt19937 random(1);
  auto bytes = mixed_elements(DType::u8, 1'024);
  const auto before = sum(bytes);
  for (int trial = 0; trial < 300'000; ++trial) {
    auto damaged = bytes;
    const auto places = 2 + random() % 3;
    const auto first = random() % 700;
    const auto difference = static_cast<std::byte>(1 + random() % 255);
    for (unsigned i = 0; i < places; ++i) damaged[first + random() % 300] ^= difference;
    ASSERT_EQ(sum(damaged) == before, damaged == bytes) << trial;
  }
}

// Half of the 64 bits change, wherever one bit of the data does.
TEST_F(ChecksumTest, spreads_a_change_over_all_its_bits) {
  auto bytes = mixed_elements(DType::u8, 333);
  const auto before = sum(bytes);
  std::array<int, 64> changed{};
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    bytes[i / 8] ^= std::byte{1} << (i % 8);
    for (std::size_t bit = 0; bit < 64; ++bit)
      changed[bit] += static_cast<int>((sum(bytes) ^ before) >> bit & 1);
    bytes[i / 8] ^= std::byte{1} << (i % 8);
  }
  const auto flips = static_cast<int>(bytes.size() * 8);
  for (const int count : changed) {
    EXPECT_GT(count, flips * 2 / 5);
    EXPECT_LT(count, flips * 3 / 5);
  }
}

}  // namespace
}  // namespace sinew::test
