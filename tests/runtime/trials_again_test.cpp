// Trials that nobody asked for begin again after some thousands of calls: at the same call on all
// ranks, whatever each is still waiting for, and they follow what has changed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "runtime/trial.hpp"
#include "support/local_ranks.hpp"
#include "support/odd_clock.hpp"
#include "support/trying.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
using test::algorithm_named;
using test::kCalls;
using test::local_trying;
using test::Names;
using test::Ran;
using test::sum_once;

constexpr int kAgain = static_cast<int>(kTrialsAgainEvery);

/// Where each "times" is in `names`.
std::vector<std::ptrdiff_t> exchanges(const Names& names) {
  std::vector<std::ptrdiff_t> at;
  for (auto one = names.begin(); one != names.end(); ++one)
    if (*one == "times") at.push_back(one - names.begin());
  return at;
}

/// After so many other calls, runs allgathers until their trial has begun again and is over. By the
/// clock of rank 0 what was slow becomes fast meanwhile; it may start them all before rank 1 has
/// called any.
Names while_it_changes(int barriers, bool starts_all) {
  auto setup = local_trying(-1);
  setup.cores = 2;
  int calls_of_0 = 0;
  setup.decorate = [&](std::unique_ptr<Transport> inner) {
    return std::make_unique<test::OddClock>(
        std::move(inner), [&](int rank, std::uint64_t algorithm) -> std::chrono::nanoseconds {
          if (rank != 0) return 0ms;
          const bool changed = ++calls_of_0 > barriers + kAgain - 10;
          return (algorithm_named(algorithm) == "direct") == changed ? 0ms : 50ms;
        });
  };
  std::atomic<bool> started{!starts_all};
  Ran ran[2];
  test::Complaints wrong(2);
  test::on_local(
      2,
      [&](Communicator& c) {
        for (int i = 0; i < barriers; ++i) c.barrier();
        c.observe(&ran[c.rank()]);
        std::vector<float> in(1000, static_cast<float>(c.rank() + 1)), out(in.size() * 2);
        const Call call{.collective = Collective::allgather,
                        .input = in.data(),
                        .output = out.data(),
                        .count = in.size()};
        while (c.rank() == 1 && !started) std::this_thread::yield();
        Request last{};
        for (int i = 0; i < kAgain + 2 * kNeutralTrialCalls; ++i)
          if (c.rank() == 0 && starts_all)
            last = c.start(call);
          else
            c.run(call);
        started = true;
        c.wait(last);
        if (out.front() != 1 || out.back() != 2) wrong.add(c.rank(), "wrong result");
        for (const auto& one : c.explain(call))  // of the last trial alone
          if (one.measured_us > 0 && one.algorithm != "direct" && one.measured_us < 50'000)
            wrong.add(c.rank(), fmt::format("{} took {} us", one.algorithm, one.measured_us));
        c.observe(nullptr);
      },
      setup);
  EXPECT_EQ(wrong.text(), "");
  EXPECT_EQ(ran[0].names, ran[1].names);
  return ran[0].names;
}

// Where calls still wait for the end of a trial when that begins again, they keep to it.
TEST(TrialsAgain, follow_what_has_changed) {
  for (const bool starts_all : {false, true}) {
    const auto names = while_it_changes(0, starts_all);
    const auto times = exchanges(names);
    ASSERT_EQ(times,
              (std::vector<std::ptrdiff_t>{kNeutralTrialCalls, kAgain + kNeutralTrialCalls}));
    const std::set<std::string> before(names.begin() + times[0] + 1, names.begin() + kAgain);
    const std::set<std::string> after(names.begin() + times[1] + 1, names.end());
    ASSERT_EQ(before.size(), 1U) << starts_all;
    EXPECT_NE(*before.begin(), "direct") << starts_all;
    EXPECT_EQ(after, std::set<std::string>{"direct"}) << starts_all;
  }
}

// A first trial may be made in any call, and the next review counts from the same one everywhere.
TEST(TrialsAgain, begin_at_the_same_call_however_late_the_first_was_made) {
  for (const int barriers : {kAgain - 1, kAgain, kAgain + 1})
    for (const bool starts_all : {false, true})
      EXPECT_EQ(exchanges(while_it_changes(barriers, starts_all)).size(), 2U)
          << barriers << starts_all;
}

// Whatever a rank does its own way: in place or not, started or run, observed or not.
TEST(TrialsAgain, of_several_kinds_begin_alike) {
  constexpr int size = 2;
  auto setup = local_trying(-1);
  setup.cores = size;
  Ran ran;
  test::Complaints wrong(size);
  test::on_local(
      size,
      [&](Communicator& c) {
        if (c.rank() == 0) c.observe(&ran);
        std::mt19937 all(7), own(static_cast<unsigned>(c.rank()));
        constexpr Collective kKinds[] = {Collective::allreduce, Collective::allgather,
                                         Collective::broadcast};
        constexpr std::size_t kCount = 1100;
        std::vector<float> in(kCount), out(kCount * size);
        for (int i = 0; i < 3 * kAgain + 1000; ++i) {
          const auto kind = kKinds[all() % 3];
          const bool gathers = kind == Collective::allgather, in_place = own() % 2 == 0;
          auto* const mine = in_place ? out.data() + (gathers ? c.rank() * kCount : 0) : in.data();
          std::fill_n(mine, kCount, static_cast<float>(c.rank() + 1));
          const Call call{.collective = kind, .input = mine, .output = out.data(), .count = kCount};
          if (own() % 2 == 0)
            c.wait(c.start(call));
          else
            c.run(call);
          const auto first = kind == Collective::allreduce ? 3.0F : 1.0F;
          if (out[0] != first || out[kCount - 1] != first || (gathers && out.back() != 2.0F))
            return wrong.add(c.rank(), fmt::format("{} #{} is wrong", name(kind), i));
        }
        if (c.rank() == 0) c.observe(nullptr);
      },
      setup);
  EXPECT_EQ(wrong.text(), "");
  EXPECT_EQ(exchanges(ran.names).size(), 6U);  // the first of each kind, and one more
}

TEST(TrialsAgain, are_none_where_a_number_of_calls_was_asked_for) {
  Ran ran;
  test::on_local(
      2,
      [&](Communicator& c) {
        if (c.rank() == 0) c.observe(&ran);
        for (int i = 0; i < 2 * kAgain; ++i) sum_once(c, 10, 1);
        if (c.rank() == 0) c.observe(nullptr);
      },
      local_trying());
  EXPECT_EQ(exchanges(ran.names), std::vector<std::ptrdiff_t>{kCalls});
}

}  // namespace
}  // namespace sinew
