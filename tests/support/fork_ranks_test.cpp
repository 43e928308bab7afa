// What ranks that are processes tell the test that started them: everything that went wrong.
#include "support/fork_ranks.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace sinew::test {
namespace {

using Stories = std::vector<std::string>;

TEST(ForkedRanks, say_nothing_when_all_went_well) {
  EXPECT_EQ(fork_ranks(3, [](const Seat& seat) { seat.join().barrier(); }), Stories{});
}

// Without a second look at gtest's verdict, a rank's failed assertion would stay in its process.
TEST(ForkedRanks, fail_where_a_rank_expected_something_else) {
  const auto stories = fork_ranks(3, [](const Seat& seat) {
    EXPECT_NE(seat.rank, 1) << "meant to fail: the test looks whether anybody notices";
  });
  EXPECT_EQ(stories, Stories{"rank 1 ended with status 1"});
}

TEST(ForkedRanks, tell_what_a_rank_threw) {
  const auto stories = fork_ranks(2, [](const Seat& seat) {
    if (seat.rank == 1) throw std::runtime_error("no more");
  });
  EXPECT_EQ(stories, Stories{"threw: no more"});
}

}  // namespace
}  // namespace sinew::test
