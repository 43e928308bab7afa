// Joining over shm: ranks that are done at once, that are missing, that do not belong.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <sinew/error.hpp>

#include "support/fork_ranks.hpp"
#include "transport/shm/shm.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

// A rank may be gone as soon as it has joined; the others must have noticed it before that.
TEST(Join, ranks_that_leave_at_once_trouble_nobody) {
  for (int trial = 0; trial < 20; ++trial) {
    const auto wrong = test::fork_ranks(4, [](const test::Seat& seat) { (void)seat.join(); });
    ASSERT_TRUE(wrong.empty()) << fmt::format("{}", fmt::join(wrong, "\n"));
  }
}

TEST(Join, names_the_ranks_that_do_not_come) {
  ShmJoin join;
  join.rendezvous = "sinew-test-join-" + std::to_string(getpid());
  join.size = 3;
  try {
    (void)join_shm(join, Clock::now() + 50ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::timeout);
    EXPECT_NE(std::string(error.what()).find("1, 2 of 3"), std::string::npos) << error.what();
  }
}

TEST(Join, refuses_a_rank_that_is_not_one_of_them) {
  ShmJoin join;
  join.rendezvous = "sinew-test";
  join.rank = 3;
  join.size = 3;
  EXPECT_THROW((void)join_shm(join, Clock::now() + 50ms), Error);
  join.rank = 0;
  join.rendezvous = std::string(200, 'x');
  EXPECT_THROW((void)join_shm(join, Clock::now() + 50ms), Error);
}

}  // namespace
}  // namespace sinew
