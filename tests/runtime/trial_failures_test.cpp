// Trials when calls are in flight, ranks call differently, die, leave or call something else:
// nobody waits for ever, nothing is wrong in silence, and the group that goes on tries again.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <random>
#include <thread>

#include "support/fork_ranks.hpp"
#include "support/mismatches.hpp"
#include "support/odd_clock.hpp"
#include "support/trying.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
using test::kCalls;
using test::local_trying;
using test::trying;

struct Flight {
  std::vector<float> data;
  int salt = 0;
  Request request;
};

Flight take_off(Communicator& c, std::size_t count, int salt) {
  Flight flight{test::summands(c, count, salt), salt, {}};
  flight.request = c.start({.collective = Collective::allreduce,
                            .input = flight.data.data(),
                            .output = flight.data.data(),
                            .count = count});
  return flight;
}

// Equal calls in an equal order; whether a rank waits at once, later or by asking is its own
// affair.
std::string fly_freely(Communicator& c, unsigned seed) {
  std::mt19937 common(seed), own(seed * 64 + static_cast<unsigned>(c.rank()));
  std::deque<Flight> flights;
  std::string wrong;
  const auto land = [&] {
    auto& flight = flights.front();
    if (own() % 2 == 0)
      while (!c.test(flight.request)) std::this_thread::yield();
    else
      c.wait(flight.request);
    if (wrong.empty()) wrong = test::complaint(c, flight.data, flight.salt);
    flights.pop_front();
  };
  for (int i = 0; i < 80; ++i) {
    const std::size_t counts[] = {7, 300, 20'000};
    const auto count = counts[common() % 3];
    if (own() % 3 == 0) {
      if (auto what = test::sum_once(c, count, i); !what.empty()) return what;
    } else {
      flights.push_back(take_off(c, count, i));
    }
    while (flights.size() > own() % 6) land();
  }
  while (!flights.empty()) land();
  return wrong;
}

TEST(TrialsInFlight, are_exact_however_each_rank_waits) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    test::Complaints wrong(3);
    test::on_local(
        3, [&](Communicator& c) { wrong.add(c.rank(), fly_freely(c, seed)); }, local_trying());
    EXPECT_EQ(wrong.text(), "") << "seed " << seed;
  }
}

TEST(TrialsInFlight, are_exact_over_shm_and_tcp) {
  for (const auto medium : test::kMedia) {
    const auto wrong = test::fork_ranks(
        3,
        [](const test::Seat& seat) {
          auto c = seat.join("free", trying());
          if (const auto what = fly_freely(c, 9); !what.empty()) seat.tell(what);
        },
        medium);
    EXPECT_TRUE(wrong.empty()) << name(medium) << ": " << wrong.front();
  }
}

// What a rank measures is nonsense here, and another nonsense on each: all keep to one all the
// same.
TEST(TrialsInFlight, agree_by_clocks_of_chance) {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    auto setup = local_trying(3);
    setup.decorate = [=](std::unique_ptr<Transport> inner) {
      const auto rank = static_cast<unsigned>(inner->rank());
      auto random = std::make_shared<std::mt19937>(seed * 16 + rank);
      return std::make_unique<test::OddClock>(std::move(inner), [random](int, std::uint64_t) {
        return std::chrono::microseconds((*random)() % 5000);
      });
    };
    test::Complaints wrong(3);
    test::on_local(
        3, [&](Communicator& c) { wrong.add(c.rank(), fly_freely(c, seed)); }, setup);
    EXPECT_EQ(wrong.text(), "") << "seed " << seed;
  }
}

// Rank 1 makes its call only after a message that rank 0 sends when it has started its own: whoever
// starts must not wait for the others, whichever call of the trial it is.
TEST(TrialsInFlight, do_not_make_start_wait) {
  test::Complaints wrong(2);
  test::on_local(
      2,
      [&](Communicator& c) {
        for (int i = 0; i < kCalls + 3; ++i) {
          std::int32_t word[] = {i};
          if (c.rank() == 1) c.recv(std::span<std::int32_t>(word), 0);
          auto first = take_off(c, 1000, i), second = take_off(c, 1000, i + 1);
          if (c.rank() == 0) c.send(std::span<const std::int32_t>(word), 1);
          c.wait(second.request);
          wrong.add(c.rank(), test::complaint(c, first.data, i));
          wrong.add(c.rank(), test::complaint(c, second.data, i + 1));
        }
      },
      local_trying());
  EXPECT_EQ(wrong.text(), "");
}

TEST(TrialsInFlight, survive_more_plans_than_are_remembered) {
  test::Complaints wrong(2);
  test::on_local(
      2,
      [&](Communicator& c) {
        std::vector<Flight> flights;
        for (int repeat = 0; repeat < 5; ++repeat)
          for (std::size_t count = 1; count <= 200; ++count)
            flights.push_back(take_off(c, count, repeat));
        for (auto& flight : flights) {
          c.wait(flight.request);
          wrong.add(c.rank(), test::complaint(c, flight.data, flight.salt));
        }
      },
      local_trying(3));
  EXPECT_EQ(wrong.text(), "");
}

// Calls until something breaks, and says what.
Error broken_after(Communicator& c, const std::function<void(int)>& before = {}) {
  try {
    for (int i = 0;; ++i) {
      if (before) before(i);
      test::sum_once(c, 1000, i);
    }
  } catch (const Error& error) {
    return error;
  }
}

// Rank 1 dies when the others are known to be done with all calls before. True: it was gone before
// the send to it returned, and all that comes says so.
bool die_as_rank_1(Communicator& c) {
  std::int32_t word[] = {0};
  try {
    if (c.rank() != 1) c.send(std::span<const std::int32_t>(word), 1);
  } catch (const Error& error) {
    if (error.code() != Errc::peer_lost) throw;
    return true;
  }
  if (c.rank() != 1) return false;
  for (const int other : {0, 2}) c.recv(std::span<std::int32_t>(word), other);
  std::raise(SIGKILL);
  return true;
}

TEST(TrialsThatFail, by_a_death_at_any_call_go_on_without_the_dead) {
  for (const auto medium : test::kMedia)
    for (int death = 0; death <= kCalls + 1; ++death) {
      const auto live = [&](const test::Seat& seat) {
        auto c = seat.join(fmt::format("death{}", death), trying());
        bool noticed = false;
        const auto error = broken_after(c, [&](int i) {
          if (i == death) noticed = die_as_rank_1(c);
        });
        if (error.code() != Errc::peer_lost || error.context().peer != 1) seat.tell(error.what());
        const std::string text = error.what();
        const bool at_the_end = text.find("the end of its trial") != std::string::npos;
        if (!noticed && at_the_end != (death == kCalls)) seat.tell(text);
        c = c.shrink();
        for (int i = 0; i < kCalls + 3; ++i)
          if (const auto wrong = test::sum_once(c, 1000, i); !wrong.empty()) seat.tell(wrong);
        seat.tell("went on");
      };
      test::ForkedRanks ranks(3, live, medium);
      const auto all = ranks.finish(60s);
      for (const std::size_t rank : {0U, 2U})
        EXPECT_EQ(all[rank].lines, std::vector<std::string>{"went on"})
            << name(medium) << ", death at call " << death;
    }
}

TEST(TrialsThatFail, by_a_rank_that_leaves_name_it) {
  for (const int calls : {1, kCalls - 1, kCalls, kCalls + 1}) {
    const auto errors = test::try_local(
        3,
        [&](Communicator& c) {
          for (int i = 0; c.rank() != 1 || i < calls; ++i) test::sum_once(c, 1000, i);
        },
        local_trying());
    EXPECT_FALSE(errors[1].has_value());
    for (const std::size_t rank : {0U, 2U}) {
      ASSERT_TRUE(errors[rank].has_value());
      EXPECT_EQ(errors[rank]->code(), Errc::peer_lost) << errors[rank]->what();
      EXPECT_EQ(errors[rank]->context().peer, 1) << errors[rank]->what();
    }
  }
}

// A whole program of exactly as many calls as a trial has: nobody owes anybody an exchange.
TEST(TrialsThatFail, do_not_when_all_leave_at_the_last_turn) {
  for (int calls = 0; calls <= kCalls + 1; ++calls) {
    const auto errors = test::try_local(
        3,
        [&](Communicator& c) {
          for (int i = 0; i < calls; ++i) {
            auto flight = take_off(c, 1000, i);
            c.wait(flight.request);
          }
        },
        local_trying());
    for (const auto& error : errors) EXPECT_FALSE(error.has_value()) << error->what();
  }
}

TEST(TrialsThatFail, by_other_calls_are_caught_and_name_both_sides) {
  const auto cases = test::mismatches();
  for (const auto medium : test::kMedia)
    for (const int before : {0, 1, kCalls - 1, kCalls, kCalls + 1}) {
      const auto live = [&](const test::Seat& seat) {
        for (std::size_t i = 0; i < cases.size(); ++i) {
          auto c = seat.join(fmt::format("{}-{}", before, i), trying());
          // Who is still in an earlier call when the others notice is told there.
          auto later = cases[i];
          later.call = [&](Communicator& to, std::vector<float>& data, bool odd) {
            for (int call = 0; call < before; ++call) test::sum_once(to, 1000, call);
            cases[i].call(to, data, odd);
          };
          seat.tell(test::provoke(c, later, 1000, seat.rank == 1));
        }
      };
      test::ForkedRanks ranks(3, live, medium);
      const auto all = ranks.finish(60s);
      for (const auto& told : all) {
        ASSERT_EQ(told.lines.size(), cases.size()) << name(medium) << " after " << before;
        for (std::size_t i = 0; i < cases.size(); ++i)
          EXPECT_EQ(test::complaint(cases[i], told.lines[i], 1), "")
              << name(medium) << " after " << before << ", " << cases[i].what << ": "
              << told.lines[i];
      }
    }
}

TEST(TrialsThatFail, because_ranks_were_told_different_things_are_errors_on_both) {
  for (const int theirs : {0, kCalls + 2}) {
    const auto stories = test::fork_ranks(2, [&](const test::Seat& seat) {
      auto c = seat.join("apart", trying(seat.rank == 0 ? kCalls : theirs));
      const auto error = broken_after(c);
      if (error.code() != Errc::mismatch) seat.tell(error.what());
    });
    EXPECT_TRUE(stories.empty()) << stories.front();
  }
}

}  // namespace
}  // namespace sinew
