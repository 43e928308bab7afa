// One trial by itself: whose turn it is, what counts of the times, and who wins.
#include "runtime/trial.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

namespace sinew {
namespace {

TEST(Trial, gives_turns_to_both_and_judges_by_means_without_the_longest_quarter) {
  const auto& ring = find_algorithm(Collective::allreduce, "ring");
  const auto& flat = find_algorithm(Collective::allreduce, "flat");
  Trial trial(std::array{&ring, &flat}, 5, {});
  const int samples[] = {10, 7, 900, 8, 12};  // without 900 and 8
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(trial.has_turns());
    ASSERT_EQ(trial.turn(), i % 2);
    trial.take_turn();
    trial.took(i % 2, std::chrono::nanoseconds(samples[i]));
  }
  EXPECT_FALSE(trial.has_turns());
  ASSERT_TRUE(trial.wants_to_ask());
  trial.ask();
  EXPECT_FALSE(trial.wants_to_ask());
  trial.fill_times();
  EXPECT_EQ(trial.times()[0], 11U);
  EXPECT_EQ(trial.times()[1], 7U);
  EXPECT_FALSE(trial.is_over());
  EXPECT_EQ(trial.measured_us("ring"), 0);
  trial.times()[1] = 13000;  // another rank was slower
  trial.judge();
  EXPECT_TRUE(trial.is_over());
  EXPECT_EQ(trial.winner(), &ring);
  EXPECT_EQ(trial.measured_us("flat"), 13);
  EXPECT_EQ(trial.measured_us("chain"), 0);
}

TEST(Trial,
     of_many_calls_gives_each_of_three_several_in_a_row_and_times_those_that_are_used_to_it) {
  const auto& ring = find_algorithm(Collective::allreduce, "ring");
  const auto& flat = find_algorithm(Collective::allreduce, "flat");
  const auto& chain = find_algorithm(Collective::allreduce, "chain");
  Trial trial(std::array{&ring, &flat, &chain}, kNeutralTrialCalls, {});
  std::string turns;
  for (int i = 0; trial.has_turns(); ++i) {
    turns += fmt::format("{}{}", trial.turn(), trial.turn_counts() ? "" : "-");
    EXPECT_EQ(trial.turn_is_first(), i == 0 || i == 4 || i == 8) << i;
    if (trial.turn_counts())
      trial.took(trial.turn(), std::chrono::nanoseconds(50 - 10 * trial.turn()));
    trial.take_turn();
    ASSERT_LT(i, kNeutralTrialCalls);
  }
  EXPECT_EQ(turns, "0-0-0-0-1-1-1-1-2-2-2-2-0-0001-1112-2220-0001-1112-222");
  trial.fill_times();
  trial.judge();
  EXPECT_EQ(trial.winner(), &chain);
  EXPECT_EQ(trial.measured_us("ring"), 0.05);
}

// By turns 1 and 90, and always 40: the first takes longer, whatever the shortest calls say.
TEST(Trial, of_calls_that_overlap_judges_by_several_in_a_row) {
  const auto& ring = find_algorithm(Collective::allreduce, "ring");
  const auto& flat = find_algorithm(Collective::allreduce, "flat");
  Trial trial(std::array{&ring, &flat}, 24, {});
  for (int i = 0; trial.has_turns(); ++i) {
    if (trial.turn_counts())
      trial.took(trial.turn(),
                 std::chrono::microseconds(trial.turn() == 0 ? (i % 3 == 0 ? 90 : 30) : 40));
    trial.take_turn();
  }
  trial.fill_times();
  trial.judge();
  EXPECT_EQ(trial.winner(), &flat);
  EXPECT_EQ(trial.measured_us("ring"), 50);
}

TEST(Trial, keeps_to_the_prediction_unless_another_was_faster_by_a_tenth) {
  const auto& ring = find_algorithm(Collective::allreduce, "ring");
  const auto& flat = find_algorithm(Collective::allreduce, "flat");
  for (const std::uint64_t other : {89U, 91U, 100U, 101U}) {
    Trial trial(std::array{&ring, &flat}, 2, {});
    trial.times()[0] = 100;
    trial.times()[1] = other;
    trial.judge();
    EXPECT_EQ(trial.winner(), other < 90 ? &flat : &ring) << other;
  }
}

TEST(Trial, begins_again_and_stands_as_it_was_judged_until_it_is_judged_again) {
  const auto& ring = find_algorithm(Collective::allreduce, "ring");
  const auto& flat = find_algorithm(Collective::allreduce, "flat");
  Trial trial(std::array{&ring, &flat}, 4, {});
  const auto run = [&](int ring_ns, int flat_ns) {
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(trial.has_turns());
      EXPECT_EQ(trial.turn(), i % 2);
      EXPECT_FALSE(trial.has_asked());
      trial.take_turn();
      trial.took(i % 2, std::chrono::nanoseconds(i % 2 == 0 ? ring_ns : flat_ns));
    }
    trial.ask();
    EXPECT_TRUE(trial.has_asked());
    trial.fill_times();
    trial.judge();
  };
  run(3000, 5000);
  EXPECT_EQ(trial.winner(), &ring);
  trial.begin_again();
  EXPECT_FALSE(trial.is_over());
  EXPECT_FALSE(trial.has_asked());
  EXPECT_EQ(trial.winner(), &ring);
  EXPECT_EQ(trial.measured_us("ring"), 3);
  run(9000, 4000);
  EXPECT_TRUE(trial.is_over());
  EXPECT_EQ(trial.winner(), &flat);
  EXPECT_EQ(trial.measured_us("ring"), 9);
  EXPECT_EQ(trial.measured_us("flat"), 4);
}

}  // namespace
}  // namespace sinew
