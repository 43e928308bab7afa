// Going on after a failure: whoever is left agrees on who is left, and the next sum is right.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <numeric>
#include <random>
#include <thread>

#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

// Sums that round differently in every order, as bits: who agrees on them has used the same data.
std::uint64_t summed_bits(Communicator& c, int old_rank) {
  std::vector<float> data(1000);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = 1.0F / static_cast<float>(1 + old_rank + static_cast<int>(i % 7));
  std::vector<float> exact(8, static_cast<float>(1 << old_rank));
  c.allreduce(std::span(data));
  c.allreduce(std::span(exact));
  std::uint64_t bits = 14695981039346656037U;
  for (const float value : data) {
    std::uint32_t word = 0;
    std::memcpy(&word, &value, sizeof word);
    bits = (bits ^ word) * 1099511628211U;
  }
  for (const float value : exact)
    if (value != exact[0]) return 0;
  return bits % 1'000'000 * 1'000 + static_cast<std::uint64_t>(exact[0]);
}

// Works until something breaks.
void break_down(Communicator& c) {
  std::vector<float> data(5000, 1);
  try {
    while (true) c.allreduce(std::span(data));
  } catch (const Error& error) {
    if (error.code() != Errc::peer_lost) throw;
  }
}

// "ready", then "rank of size, epoch, sum" for every group that it was in, until only `last` ranks
// are left.
void live(const test::Seat& seat, int last) {
  const int descriptors = test::open_descriptors();
  {
    auto c = seat.join("life", {.timeout = 20s});
    c.barrier();
    seat.tell("ready");
    while (c.size() > last) {
      break_down(c);
      c = c.shrink();
      try {
        seat.tell(fmt::format("{} of {} epoch {} sum {}", c.rank(), c.size(), c.epoch(),
                              summed_bits(c, seat.rank)));
      } catch (const Error& error) {
        if (error.code() != Errc::peer_lost) throw;  // the next death came early
      }
    }
    c.barrier();
  }
  if (test::open_descriptors() != descriptors) seat.tell("leaks descriptors");
  if (test::maps_a_segment()) seat.tell("leaks the segment");
}

int sum_of_bits(const std::vector<int>& ranks) {
  return std::accumulate(ranks.begin(), ranks.end(), 0,
                         [](int sum, int rank) { return sum + (1 << rank); });
}

// The last line of every survivor: dense ranks in the old order, one epoch, the same bits.
void expect_agreement(const std::vector<test::Told>& all, const std::vector<int>& survivors,
                      const std::string& story) {
  std::string first;
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    const auto& text = all[static_cast<std::size_t>(survivors[i])].lines.back();
    const auto place = fmt::format("{} of {} ", i, survivors.size());
    ASSERT_EQ(text.substr(0, place.size()), place) << story << ", " << text;
    const auto rest = text.substr(place.size());
    if (i == 0) first = rest;
    EXPECT_EQ(rest, first) << story;
    const auto sum = std::stoull(rest.substr(rest.rfind(' ') + 1));
    EXPECT_EQ(sum % 1000, static_cast<unsigned>(sum_of_bits(survivors))) << story << ", " << text;
  }
}

void kill_and_go_on(unsigned seed, test::Medium medium) {
  std::mt19937 random(seed);
  const int size = 2 + static_cast<int>(random() % 5);
  const int deaths = 1 + static_cast<int>(random() % static_cast<unsigned>(std::min(size - 1, 2)));
  std::vector<int> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const auto story =
      fmt::format("seed {}: {} of {} over {}", seed,
                  fmt::join(order.begin(), order.begin() + deaths, ", "), size, name(medium));
  test::ForkedRanks ranks(
      size, [&](const test::Seat& seat) { live(seat, size - deaths); }, medium);
  ASSERT_TRUE(ranks.wait_for_lines(1, 20s)) << story;
  std::vector<int> survivors = order;
  for (int death = 0; death < deaths; ++death) {
    // The second may hit while the others shrink, or long after.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    ranks.signal(survivors.front(), SIGKILL);
    survivors.erase(survivors.begin());
  }
  std::sort(survivors.begin(), survivors.end());
  const auto all = ranks.finish(30s);
  for (const int rank : survivors) {
    const auto& told = all[static_cast<std::size_t>(rank)];
    ASSERT_EQ(told.status, 0) << story << ", rank " << rank << ": "
                              << fmt::format("{}", fmt::join(told.lines, "; "));
    EXPECT_LE(told.lines.size(), static_cast<std::size_t>(1 + deaths))
        << story << ": " << told.lines.back();
    ASSERT_GE(told.lines.size(), 2U) << story;
  }
  expect_agreement(all, survivors, story);
}

class Shrink : public testing::TestWithParam<test::Medium> {};
INSTANTIATE_TEST_SUITE_P(Over, Shrink, testing::ValuesIn(test::kMedia),
                         [](const auto& medium) { return std::string(name(medium.param)); });

TEST_P(Shrink, after_kill_9_survivors_agree_and_their_next_sum_is_right) {
  const int descriptors = test::open_descriptors();
  const unsigned trials = std::getenv("SINEW_FULL") != nullptr ? 100 : 20;
  for (unsigned seed = 1; seed <= trials && !HasFatalFailure(); ++seed)
    kill_and_go_on(seed, GetParam());
  EXPECT_EQ(test::open_descriptors(), descriptors);
}

// One rank is stopped; the others name it, go on without it, and it cannot come back.
void stop_and_go_on(test::Medium medium) {
  constexpr auto kTimeout = 600ms;
  test::ForkedRanks ranks(
      3,
      [&](const test::Seat& seat) {
        std::string warning;
        Options options{.timeout = kTimeout};
        options.warn = [&](std::string_view text) { warning = text; };
        auto c = seat.join("stop", options);
        c.barrier();
        seat.tell("ready");
        std::vector<float> data(2000, 1);
        try {
          while (true) c.allreduce(std::span(data));
        } catch (const Error& error) {
          seat.tell(fmt::format("{}: {}", name(error.code()), error.what()));
        }
        try {
          c = c.shrink();
        } catch (const Error& error) {
          seat.tell(fmt::format("{}: {}", name(error.code()), error.what()));
          return;
        }
        seat.tell(warning);
        seat.tell(fmt::format("sum {}", summed_bits(c, seat.rank)));
        // The stopped one comes back meanwhile.
        for (int i = 0; i < 100; ++i) {
          c.allreduce(std::span(data));
          std::this_thread::sleep_for(10ms);
        }
        seat.tell(fmt::format("sum {}", summed_bits(c, seat.rank)));
      },
      medium);
  ASSERT_TRUE(ranks.wait_for_lines(1, 20s));
  ranks.signal(2, SIGSTOP);
  const auto stopped = Clock::now();
  ASSERT_TRUE(ranks.wait_for_lines_of({0, 1}, 4, 10s));
  EXPECT_LT(Clock::now() - stopped, 2 * kTimeout + 1s);
  ranks.signal(2, SIGCONT);
  const auto all = ranks.finish(20s);
  for (const int rank : {0, 1}) {
    const auto& lines = all[static_cast<std::size_t>(rank)].lines;
    ASSERT_EQ(lines.size(), 5U) << fmt::format("{}", fmt::join(lines, "; "));
    EXPECT_EQ(lines[1].substr(0, 8), "timeout:") << lines[1];
    EXPECT_NE(lines[1].find("rank 2"), std::string::npos) << lines[1];
    EXPECT_NE(lines[2].find("still waiting after"), std::string::npos) << lines[2];
    EXPECT_NE(lines[2].find("rank 2"), std::string::npos) << lines[2];
    EXPECT_EQ(lines[3], all[0].lines[3]);
    EXPECT_EQ(lines[4], lines[3]);
    EXPECT_EQ(std::stoull(lines[3].substr(4)) % 1000, 3U) << lines[3];
    EXPECT_EQ(all[static_cast<std::size_t>(rank)].status, 0);
  }
  const auto& lines = all[2].lines;
  ASSERT_EQ(lines.size(), 3U) << fmt::format("{}", fmt::join(lines, "; "));
  EXPECT_NE(lines[1].find("went on without it"), std::string::npos) << lines[1];
  EXPECT_EQ(lines[2].substr(0, 9), "expelled:") << lines[2];
}

TEST_P(Shrink, a_stopped_rank_is_named_given_up_and_cannot_come_back) {
  const int trials = std::getenv("SINEW_FULL") != nullptr ? 10 : 1;
  for (int trial = 0; trial < trials && !HasFatalFailure(); ++trial) stop_and_go_on(GetParam());
}

TEST(ShrinkLocal, works_again_and_again_until_one_is_left) {
  constexpr int kSize = 5;
  const auto errors = test::try_local(kSize, [](Communicator& first) {
    const int me = first.rank();
    auto c = std::move(first);
    // The highest rank leaves, again and again.
    for (int left = kSize; left > 1; --left) {
      if (c.rank() == left - 1) return;
      break_down(c);
      c = c.shrink();
      EXPECT_EQ(c.size(), left - 1);
      EXPECT_EQ(c.rank(), me);
      EXPECT_EQ(c.epoch(), static_cast<unsigned>(kSize - left + 1));
      EXPECT_EQ(summed_bits(c, me) % 1000, (1U << (left - 1)) - 1);
    }
    EXPECT_EQ(c.size(), 1);
  });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
}

TEST(ShrinkLocal, without_a_death_everyone_goes_on) {
  const auto errors = test::try_local(4, [](Communicator& c) {
    std::vector<float> data(10, 1);
    if (c.rank() == 2) data.resize(11);
    EXPECT_THROW(
        {
          for (int i = 0; i < 1000; ++i) c.allreduce(std::span(data));
        },
        Error);
    auto next = c.shrink();
    EXPECT_EQ(next.size(), 4);
    EXPECT_EQ(summed_bits(next, next.rank()) % 1000, 15U);
    // The old one stays of no use.
    EXPECT_THROW(c.barrier(), Error);
  });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
}

TEST(ShrinkLocal, splits_after_it_work) {
  const auto errors = test::try_local(5, [](Communicator& c) {
    const int me = c.rank();
    if (me == 0) return;
    break_down(c);
    auto next = c.shrink();
    auto half = next.split(next.rank() % 2);
    EXPECT_EQ(half.size(), 2);
    std::vector<float> data{static_cast<float>(me)};
    half.allreduce(std::span(data));
    EXPECT_EQ(data[0], me % 2 == 1 ? 4 : 6);
  });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
}

TEST(ShrinkLocal, a_rank_that_does_not_come_is_given_up_and_told_so) {
  std::atomic<bool> done{false};
  const auto errors = test::try_local(3, [&](Communicator& c) {
    std::vector<float> data(10, 1);
    c.barrier();
    if (c.rank() == 1) {
      while (!done) std::this_thread::sleep_for(1ms);
      // Back from wherever it was.
      try {
        // All have given their part to the first: that sum it may still get.
        for (int i = 0; i < 2; ++i) c.allreduce(std::span(data));
        ADD_FAILURE() << "an expelled rank got a sum";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::expelled) << error.what();
      }
      (void)c.shrink();
      return;
    }
    EXPECT_THROW(c.allreduce(std::span(data), ReduceOp::sum, {.timeout = 200ms}), Error);
    auto next = c.shrink(300ms);
    EXPECT_EQ(next.size(), 2);
    EXPECT_EQ(summed_bits(next, c.rank()) % 1000, 5U);
    done = true;
    next.barrier();
  });
  EXPECT_FALSE(errors[0]) << errors[0]->what();
  EXPECT_FALSE(errors[2]) << errors[2]->what();
  ASSERT_TRUE(errors[1]);
  EXPECT_EQ(errors[1]->code(), Errc::expelled);
}

TEST(ShrinkLocal, a_minority_does_not_go_on) {
  std::atomic<int> done{0};
  const auto errors = test::try_local(4, [&](Communicator& c) {
    std::vector<float> data(10, 1);
    c.barrier();
    if (c.rank() >= 2) {
      while (done < 2) std::this_thread::sleep_for(1ms);
      return;
    }
    EXPECT_THROW(c.allreduce(std::span(data), ReduceOp::sum, {.timeout = 200ms}), Error);
    try {
      (void)c.shrink(300ms);
    } catch (...) {
      ++done;
      throw;
    }
    ++done;
  });
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(errors[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(errors[static_cast<std::size_t>(rank)]->code(), Errc::minority);
    const std::string text = errors[static_cast<std::size_t>(rank)]->what();
    EXPECT_NE(text.find("of 4 ranks cannot go on: rank 2 is silent"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace sinew
