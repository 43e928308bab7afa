// Indices as gaps and back, against the plain loop and against what was put in.
#include "kernel/gaps.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernel/simd_targets.hpp"

namespace sinew {
namespace {

class Gaps : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { choose_simd_for_test(GetParam()); }
  void TearDown() override { choose_simd_for_test(SimdLevel::best); }
};

constexpr std::byte kUntouched{0xA5};
constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

/// Most gaps are below `usual`, one in `rare` is anything.
std::vector<std::uint32_t> ascending(std::size_t count, std::uint32_t usual, unsigned rare,
                                     unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> indices;
  std::uint64_t next = random() % usual;
  for (; indices.size() < count && next <= 0xFFFF'FFFF; next += 1 + random() % usual) {
    if (random() % rare == 0) next += std::uint64_t{1} << random() % 30;
    if (next <= 0xFFFF'FFFF) indices.push_back(static_cast<std::uint32_t>(next));
  }
  return indices;
}

std::vector<std::byte> coded(const std::vector<std::uint32_t>& indices, std::uint32_t base) {
  std::vector<std::byte> bytes(indices.size() * kMostGapBytes);
  bytes.resize(
      static_cast<std::size_t>(put_gaps_scalar(indices, base, bytes.data()) - bytes.data()));
  return bytes;
}

TEST_P(Gaps, are_put_as_the_plain_loop_puts_them) {
  for (const std::size_t count : {0UL, 1UL, 7UL, 8UL, 9UL, 17UL, 1000UL})
    for (const auto usual : {1U, 60U, 128U, 1000U, 16383U, 16384U, 100000U})
      for (const auto rare : {5U, 100U, 100000U})
        for (const auto seed : {1U, 2U, 3U}) {
          const auto indices = ascending(count, usual, rare, seed);
          const auto base = indices.empty() ? 0 : indices.front() - indices.front() % usual;
          const auto expected = coded(indices, base);
          const auto room = indices.size() * kMostGapBytes;
          std::vector<std::byte> bytes(room + 1, kUntouched);
          const auto* const end = put_gaps(indices, base, bytes.data());
          ASSERT_EQ(static_cast<std::size_t>(end - bytes.data()), expected.size());
          EXPECT_TRUE(std::equal(expected.begin(), expected.end(), bytes.begin()));
          EXPECT_EQ(bytes[room], kUntouched);
        }
}

// It may stop wherever it likes, so that one is read by hand where nothing else comes.
TEST_P(Gaps, are_taken_as_they_were_put) {
  std::size_t taken = 0, all = 0;
  for (const auto usual : {1U, 2U, 60U, 127U, 128U, 129U, 300U, 16383U, 16384U, 100000U})
    for (const auto rare : {5U, 100U, 100000U}) {
      const auto indices = ascending(3000, usual, rare, usual + rare);
      const auto bytes = coded(indices, 0);
      std::vector<std::uint32_t> found(indices.size());
      const auto* const end = bytes.data() + bytes.size();
      GapPlace place{bytes.data(), ~std::uint64_t{0}};
      for (std::size_t done = 0; done < indices.size(); ++done) {
        const auto many = take_gaps(place, end, kNoLimit, std::span(found).subspan(done));
        taken += many;
        done += many;
        if (done == indices.size()) break;
        std::uint64_t gap = 0;
        for (int shift = 0;; shift += 7) {
          const auto byte = std::to_integer<std::uint64_t>(*place.at++);
          gap |= (byte & 0x7F) << shift;
          if (byte < 0x80) break;
        }
        place.index += gap + 1;
        found[done] = static_cast<std::uint32_t>(place.index);
      }
      all += indices.size();
      EXPECT_EQ(found, indices) << usual << ' ' << rare;
      EXPECT_EQ(place.at, end);
    }
  if (GetParam() != SimdLevel::none) {
    EXPECT_GT(taken, all / 2);
  }
}

TEST_P(Gaps, none_is_taken_beyond_the_limit_the_end_or_the_room) {
  const auto indices = ascending(500, 200, 100000, 7);
  auto bytes = coded(indices, 0);
  const auto size = bytes.size();
  for (std::size_t length = 0; length <= size; length += 13) {
    // A copy, so that a sanitizer sees who reads too far.
    const std::vector<std::byte> part(bytes.begin(),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(length));
    std::vector<std::uint32_t> room(indices.size());
    GapPlace place{part.data(), ~std::uint64_t{0}};
    const auto found = take_gaps(place, part.data() + length, kNoLimit, room);
    EXPECT_LE(place.at, part.data() + length);
    EXPECT_TRUE(std::equal(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(found),
                           indices.begin()));
    if (GetParam() != SimdLevel::none && length >= 16) {
      EXPECT_GT(found, 0U) << length;
    }
  }
  for (std::size_t most = 0; most < indices.size(); most += 11) {
    std::vector<std::uint32_t> room(most);
    GapPlace place{bytes.data(), ~std::uint64_t{0}};
    EXPECT_LE(take_gaps(place, bytes.data() + size, kNoLimit, room), most);
  }
  for (const std::uint64_t limit : {0UL, 1UL, 100UL, 5000UL, 20000UL}) {
    std::vector<std::uint32_t> room(indices.size());
    GapPlace place{bytes.data(), ~std::uint64_t{0}};
    const auto found = take_gaps(place, bytes.data() + size, limit, room);
    for (std::size_t i = 0; i < found; ++i) EXPECT_LT(room[i], limit);
    EXPECT_EQ(place.index, found == 0 ? ~std::uint64_t{0} : room[found - 1]);
    if (GetParam() != SimdLevel::none && limit >= 5000) {
      EXPECT_GT(found, 10U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Gaps,
                         testing::Values(SimdLevel::best, SimdLevel::avx2, SimdLevel::none));

}  // namespace
}  // namespace sinew
