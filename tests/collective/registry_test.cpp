// Symbolic tests: every algorithm of the registry does what its collective promises, everywhere.
#include <gtest/gtest.h>

#include <set>

#include <sinew/error.hpp>
#include <sinew/verify.hpp>
#include "support/worlds.hpp"

namespace sinew {
namespace {

using test::settings;

std::vector<int> sizes() {
  std::vector<int> result;
  for (int size = 1; size <= 33; ++size) result.push_back(size);
  result.push_back(64);
  return result;
}

class EveryAlgorithm : public testing::TestWithParam<Algorithm> {};

TEST_P(EveryAlgorithm, verifies_under_both_send_modes) {
  for (const int size : sizes())
    for (const auto& setting : settings(GetParam(), size))
      for (const auto sends : {Sends::buffered, Sends::synchronous}) {
        const auto verdict = verify(setting.world(), {.sends = sends});
        ASSERT_TRUE(verdict.ok()) << to_string(setting) << ": " << verdict.fault->why;
        ASSERT_TRUE(verdict.same_order) << to_string(setting);
      }
}

TEST_P(EveryAlgorithm, keeps_its_word_on_rank_order) {
  bool always = true;
  for (const int size : sizes())
    for (const auto& setting : settings(GetParam(), size))
      always &= verify(setting.world()).rank_order;
  EXPECT_EQ(always, GetParam().traits.rank_order);
}

TEST_P(EveryAlgorithm, keeps_its_word_on_in_place_calls) {
  bool always = true;
  for (const int size : sizes())
    for (const auto& setting : settings(GetParam(), size)) {
      const auto verdict = verify(setting.world(), {.placement = Placement::in_place});
      always &= verdict.ok();
      if (GetParam().traits.in_place) {
        ASSERT_TRUE(verdict.ok()) << to_string(setting) << ": " << verdict.fault->why;
      }
    }
  EXPECT_EQ(always, GetParam().traits.in_place);
}

TEST_P(EveryAlgorithm, publishes_nothing_it_overwrites_while_others_read) {
  for (const int size : {2, 3, 4, 7, 8})
    for (const auto& setting : settings(GetParam(), size)) {
      const auto verdict = verify(setting.world(), {.exposure = Exposure::referenced});
      EXPECT_TRUE(verdict.ok()) << to_string(setting) << ": " << verdict.fault->why;
    }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryAlgorithm,
                         testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& row) {
                           return std::string(name(row.param.collective)) + "_" +
                                  std::string(row.param.name);
                         });

TEST(Registry, suggests_the_nearest_name) {
  try {
    find_algorithm(Collective::allreduce, "rign");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_STREQ(error.what(), "unknown allreduce algorithm 'rign'; did you mean 'ring'?");
  }
}

TEST(Registry, refuses_places_an_algorithm_does_not_fit) {
  const auto& doubling = find_algorithm(Collective::allgather, "recursive_doubling");
  EXPECT_THROW(make_world(doubling, 6), Error);
  const auto& flat = find_algorithm(Collective::allreduce, "flat");
  EXPECT_THROW(make_world(flat, 4, 0, 1, {}, {.board = false}), Error);
  const auto& ring = find_algorithm(Collective::allreduce, "ring");
  EXPECT_THROW(make_world(ring, 4, 4), Error);
}

TEST(Registry, names_are_unique_within_a_collective) {
  std::set<std::pair<Collective, std::string_view>> seen;
  for (const auto& algorithm : algorithms())
    EXPECT_TRUE(seen.emplace(algorithm.collective, algorithm.name).second) << algorithm.name;
}

}  // namespace
}  // namespace sinew
