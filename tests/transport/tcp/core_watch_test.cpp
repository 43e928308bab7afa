// Whose turn a long yield was: excused as far as ranks compute, and no further.
#include "transport/tcp/core_watch.hpp"

#include <gtest/gtest.h>

namespace sinew::tcp {
namespace {

using namespace std::chrono_literals;

/// A rank and its clock.
class Rank {
 public:
  void compute(Clock::duration how_long) { now_ += how_long; }
  void begin() { core_.operation_begins(now_); }
  bool yield(Clock::duration how_long) {
    const auto before = now_;
    now_ += how_long;
    return core_.meets_stranger(before, now_);
  }
  void end() { core_.wait_is_over(); }
  /// An operation that waits for a moment.
  void operate() {
    begin();
    yield(2us);
    end();
  }

 private:
  Clock::time_point now_{1h};  // clocks do not begin when ranks do
  CoreWatch core_{now_};
};

TEST(CoreWatch, a_long_yield_of_a_rank_that_never_computes_was_a_strangers) {
  Rank rank;
  for (int i = 0; i < 3; ++i) rank.operate();
  rank.begin();
  EXPECT_FALSE(rank.yield(200us));
  EXPECT_TRUE(rank.yield(3ms));
}

TEST(CoreWatch, a_rank_that_computes_excuses_twice_as_much_in_a_wait) {
  Rank rank;
  rank.compute(3ms);
  rank.begin();
  EXPECT_FALSE(rank.yield(3ms));
  EXPECT_FALSE(rank.yield(2900us));
  EXPECT_TRUE(rank.yield(1ms));
  rank.end();
  EXPECT_FALSE(rank.yield(3ms)) << "the next wait begins anew";
}

TEST(CoreWatch, one_computation_excuses_the_waits_of_all_operations_of_a_step) {
  Rank rank;
  for (int step = 0; step < 100; ++step) {
    rank.compute(3ms);
    for (int operation = 0; operation < 10; ++operation) rank.operate();
  }
  rank.begin();
  EXPECT_FALSE(rank.yield(3ms));
}

TEST(CoreWatch, an_absence_is_forgotten_and_a_long_one_counts_as_a_shorter) {
  Rank rank;
  rank.compute(1h);
  rank.begin();
  EXPECT_FALSE(rank.yield(19ms));
  EXPECT_TRUE(rank.yield(2ms));
  rank.end();
  for (int i = 0; i < 300; ++i) rank.operate();
  rank.begin();
  EXPECT_TRUE(rank.yield(3ms));
}

}  // namespace
}  // namespace sinew::tcp
