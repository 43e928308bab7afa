// How slots are written: ranks that chose apart find together again, and the fastest way wins.
#include "runtime/store_policy.hpp"

#include <gtest/gtest.h>

#include <array>

namespace sinew {
namespace {

using Times = std::array<std::uint64_t, 3>;  // a run's, for each of PastCaches

/// How many of `runs` were of each way, if they take `times`.
std::array<int, 3> count(StorePolicy& policy, int runs, const Times& times) {
  std::array<int, 3> counts{};
  for (int i = 0; i < runs; ++i) {
    const auto way = static_cast<std::size_t>(policy.next());
    policy.took(times[way]);
    ++counts[way];
  }
  return counts;
}

constexpr auto kNone = static_cast<std::size_t>(PastCaches::none);
constexpr auto kAll = static_cast<std::size_t>(PastCaches::all);
constexpr auto kResults = static_cast<std::size_t>(PastCaches::results);

TEST(StorePolicy, ranks_that_chose_apart_find_what_is_fast_for_both) {
  StorePolicy a, b;
  // As they begin, chance tells them different things.
  for (int run = 0; run < 6; ++run) {
    const bool streams = a.next() == PastCaches::all;
    EXPECT_EQ(streams, b.next() == PastCaches::all);
    a.took(streams ? 200'000 : 210'000);
    b.took(streams ? 210'000 : 200'000);
  }
  int together = 0;
  for (int run = 0; run < 400; ++run) {
    const bool one = a.next() == PastCaches::all, other = b.next() == PastCaches::all;
    const std::uint64_t took = one && other ? 36'000 : 230'000;  // as slow as the slower of both
    a.took(took);
    b.took(took);
    together += run >= 200 && one && other ? 1 : 0;
  }
  EXPECT_GT(together, 190);
}

TEST(StorePolicy, follows_when_the_other_way_becomes_faster) {
  StorePolicy policy;
  constexpr Times kBefore{50'000, 100'000, 0}, kAfter{300'000, 100'000, 0};
  count(policy, 200, kBefore);
  EXPECT_LT(count(policy, 128, kBefore)[kAll], 10);
  count(policy, 200, kAfter);
  EXPECT_GT(count(policy, 128, kAfter)[kAll], 118);
}

TEST(StorePolicy, results_alone_are_a_way_where_folds_store_them_twice) {
  StorePolicy policy;
  policy.expect(1, true);
  constexpr Times kShared{134'000, 180'000, 124'000}, kApart{820'000, 175'000, 580'000};
  count(policy, 20, kShared);
  EXPECT_GE(count(policy, 192, kShared)[kResults], 184);
  count(policy, 20, kApart);
  EXPECT_GE(count(policy, 192, kApart)[kAll], 184);
  count(policy, 200, kShared);
  EXPECT_GE(count(policy, 192, kShared)[kResults], 184);
}

TEST(StorePolicy, one_long_run_says_nothing) {
  StorePolicy policy;
  policy.expect(1, true);
  constexpr Times kUsual{134'000, 180'000, 124'000};
  count(policy, 20, kUsual);
  for (int i = 0; i < 10; ++i) {
    count(policy, 1, {700'000, 700'000, 700'000});
    EXPECT_GT(count(policy, 10, kUsual)[kResults], 8);
  }
}

TEST(StorePolicy, that_forgets_finds_out_within_a_few_runs) {
  StorePolicy policy;
  count(policy, 100, {100'000, 175'000, 0});
  constexpr Times kApart{820'000, 175'000, 0};
  EXPECT_EQ(count(policy, 12, kApart)[kAll], 0);
  policy.forget();
  EXPECT_EQ(count(policy, 12, kApart)[kAll], 9);
}

TEST(StorePolicy, stays_where_another_way_is_hardly_faster) {
  StorePolicy policy;
  policy.expect(1, true);
  constexpr Times kUsual{100'000, 150'000, 104'000}, kHardly{100'000, 150'000, 97'000};
  count(policy, 20, kUsual);
  EXPECT_GT(count(policy, 384, kHardly)[kNone], 376);
  EXPECT_GT(count(policy, 384, {104'000, 150'000, 97'000})[kResults], 180);
}

TEST(StorePolicy, results_alone_are_not_tried_where_nothing_is_stored_twice) {
  StorePolicy policy;
  EXPECT_EQ(count(policy, 1000, {50'000, 100'000, 0})[kResults], 0);
}

TEST(StorePolicy, long_runs_follow_what_only_a_trial_can_show) {
  StorePolicy policy;
  policy.expect(27, false);
  // Ordinary stores become slow, but not as slow as streaming once was.
  count(policy, 100, {12'000'000, 48'000'000, 0});
  count(policy, 924, {40'000'000, 15'000'000, 0});
  EXPECT_GT(count(policy, 1024, {40'000'000, 15'000'000, 0})[kAll], 1000);
}

TEST(StorePolicy, long_runs_leave_a_way_that_has_become_slow_after_a_few) {
  StorePolicy policy;
  policy.expect(27, true);
  count(policy, 20, {55'000'000, 70'000'000, 56'000'000});
  EXPECT_GE(count(policy, 8, {140'000'000, 64'000'000, 110'000'000})[kAll], 3);
}

TEST(StorePolicy, long_runs_try_the_other_way_less_often) {
  const auto tried = [](std::uint32_t passes) {
    StorePolicy policy;
    policy.expect(passes, false);
    return count(policy, 4096, {12'000'000, 48'000'000, 0})[kAll];
  };
  EXPECT_EQ(tried(1), 3 + 4096 / 64 / 2);
  EXPECT_EQ(tried(27), 3 + 4096 / 256 / 2);
}

TEST(StorePolicy, as_many_trials_with_three_ways_as_with_two) {
  StorePolicy policy;
  policy.expect(1, true);
  const auto counts = count(policy, 64 * 96, {124'000, 180'000, 130'000});
  EXPECT_EQ(counts[kAll], 2 + 96 / 3);
  EXPECT_EQ(counts[kResults], 2 + 96 / 3);
  EXPECT_EQ(counts[kNone] + counts[kAll] + counts[kResults], 64 * 96);
}

}  // namespace
}  // namespace sinew
