// Trials of several algorithms: calls take turns, all ranks keep to the same one at the same call,
// and whatever ranks have for themselves makes no difference to that.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <set>

#include "runtime/connect.hpp"
#include "runtime/trial.hpp"
#include "support/exact_data.hpp"
#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"
#include "support/odd_clock.hpp"
#include "support/trying.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
using test::kCalls;
using test::local_trying;
using test::Names;
using test::Ran;
using test::sum_once;
using test::trying;

Call sum_call(std::span<float> data) {
  return {.collective = Collective::allreduce,
          .input = data.data(),
          .output = data.data(),
          .count = data.size()};
}

/// The two that are predicted fastest.
std::pair<std::string, std::string> two_best(const Communicator& c, const Call& call) {
  const auto all = c.explain(call);
  return {std::string(all.at(0).algorithm), std::string(all.at(1).algorithm)};
}

Names turns_then(const std::pair<std::string, std::string>& two, const std::string& winner,
                 int calls, int after) {
  Names names;
  for (int i = 0; i < calls; ++i) names.push_back(i % 2 == 0 ? two.first : two.second);
  names.emplace_back("times");
  names.insert(names.end(), static_cast<std::size_t>(after), winner);
  return names;
}

/// The algorithm for each collective without a name, so that the library chooses.
const Algorithm& unnamed(Collective collective) {
  static const auto all = [] {
    std::vector<Algorithm> list;
    for (const auto& algorithm : algorithms())
      if (list.empty() || list.back().collective != algorithm.collective) {
        list.push_back(algorithm);
        list.back().name = "";
      }
    return list;
  }();
  return *std::find_if(all.begin(), all.end(),
                       [=](const Algorithm& one) { return one.collective == collective; });
}

constexpr Collective kCollectives[] = {
    Collective::allreduce, Collective::reduce,         Collective::broadcast,
    Collective::allgather, Collective::reduce_scatter, Collective::alltoall,
    Collective::scatter,   Collective::gather,         Collective::barrier};

// Every collective through its trial and beyond, each rank in place or not as it likes.
std::string every_collective(Communicator& c) {
  std::mt19937 own(static_cast<unsigned>(c.rank()));
  for (const std::size_t count : {1UL, 1000UL, 40'000UL})
    for (int repeat = 0; repeat < kCalls + 3; ++repeat)
      for (const auto collective : kCollectives) {
        test::Trial trial{&unnamed(collective), collective == Collective::barrier ? 0 : count};
        trial.root = 1 % c.size();
        trial.in_place = own() % 2 == 0;
        if (auto wrong = test::attempt(c, trial); !wrong.empty()) return wrong;
      }
  return "";
}

TEST(Trials, of_one_call_or_of_less_than_none_are_refused) {
  for (const int calls : {1, -2, kMostTrialCalls + 1}) {
    const auto errors = test::try_local(
        1, [](Communicator&) {}, local_trying(calls));
    ASSERT_TRUE(errors[0].has_value()) << calls;
    EXPECT_EQ(errors[0]->code(), Errc::invalid_argument);
    EXPECT_NE(std::string(errors[0]->what()).find(fmt::format("Options::trial_calls={}", calls)),
              std::string::npos)
        << errors[0]->what();
  }
}

TEST(Trials, are_what_the_options_say_and_else_the_environment) {
  setenv("SINEW_TRIAL", "20", 1);
  EXPECT_EQ(with_environment({}).trial_calls, 20);
  EXPECT_EQ(with_environment(trying(0)).trial_calls, 0);  // as training asks for
  EXPECT_EQ(with_environment(trying(4)).trial_calls, 4);
  unsetenv("SINEW_TRIAL");
  EXPECT_EQ(with_environment({}).trial_calls, -1);  // where no bit depends on it
}

// Each rank's own clock says otherwise than the other's, in both directions: who believed itself
// would run another algorithm than the other, which is an error.
TEST(Trials, end_alike_on_ranks_whose_clocks_differ) {
  struct Case {
    std::array<std::chrono::milliseconds, 2> first, second;  // by rank
    bool second_wins;
  };
  for (const auto& one :
       {Case{{500ms, 100ms}, {50ms, 200ms}, true}, Case{{300ms, 100ms}, {50ms, 600ms}, false}}) {
    auto setup = local_trying();
    std::vector<float> some(1000);
    std::pair<std::string, std::string> two;
    test::on_local(2, [&](Communicator& c) {
      if (c.rank() == 0) two = two_best(c, sum_call(some));
    });
    setup.decorate = [&](std::unique_ptr<Transport> inner) {
      const auto lie = [&](int rank, std::uint64_t algorithm) -> std::chrono::nanoseconds {
        const auto at = static_cast<std::size_t>(rank);
        if (algorithm == algorithm_key(two.first)) return one.first[at];
        return algorithm == algorithm_key(two.second) ? one.second[at] : 0ms;
      };
      return std::make_unique<test::OddClock>(std::move(inner), lie);
    };
    Ran ran[2];
    test::Complaints wrong(2);
    test::on_local(
        2,
        [&](Communicator& c) {
          c.observe(&ran[c.rank()]);
          for (int i = 0; i < kCalls + 5; ++i) wrong.add(c.rank(), sum_once(c, 1000, i));
          c.observe(nullptr);
        },
        setup);
    EXPECT_EQ(wrong.text(), "");
    const auto expected = turns_then(two, one.second_wins ? two.second : two.first, kCalls, 5);
    for (const auto& rank : ran) EXPECT_EQ(rank.names, expected);
  }
}

TEST(Trials, of_short_calls_are_off_unless_asked_for) {
  for (const int calls : {-1, 0}) {
    Ran ran[2];
    test::on_local(
        2,
        [&](Communicator& c) {
          c.observe(&ran[c.rank()]);
          for (int i = 0; i < 20; ++i) sum_once(c, 1000, i);
        },
        local_trying(calls));
    EXPECT_EQ(ran[0].names, Names(20, ran[0].names.front()));
  }
}

TEST(Trials, leave_out_calls_that_are_deterministic_named_ragged_or_empty) {
  auto setup = local_trying(2);
  const auto run = [&](const std::function<void(Communicator&)>& body) {
    Ran ran[2];
    test::on_local(
        2,
        [&](Communicator& c) {
          c.observe(&ran[c.rank()]);
          for (int i = 0; i < 8; ++i) body(c);
        },
        setup);
    return ran[0].names;
  };
  const auto ring = run([](Communicator& c) {
    std::vector<float> data(1000, 1);
    c.allreduce(std::span(data), ReduceOp::sum, {.algorithm = "ring"});
  });
  EXPECT_EQ(ring, Names(8, "ring"));
  const auto none = run([](Communicator& c) { c.allreduce(std::span<float>()); });
  EXPECT_EQ(none, Names(8, none.front()));
  const auto unknown = run([](Communicator& c) {
    const std::size_t counts[] = {300, 300};
    std::vector<float> in(600, 1), out(600);
    c.alltoallv(std::span<const float>(in), counts, std::span(out), counts);
  });
  EXPECT_EQ(unknown, Names(8, unknown.front()));
  setup.options.algorithm = "chain";  // for all that have it
  const auto chain = run([](Communicator& c) { sum_once(c, 1000, 1); });
  EXPECT_EQ(chain, Names(8, "chain"));
  setup.options.algorithm = "";
  setup.options.deterministic = true;
  const auto ordered = run([](Communicator& c) { sum_once(c, 1000, 1); });
  EXPECT_EQ(ordered, Names(8, ordered.front()));
}

// Nobody asked: what takes part then gives the same bits, and another way of moving them.
TEST(Trials, unasked_are_of_algorithms_with_the_same_bits) {
  const int size = 2;
  auto setup = local_trying(-1);
  setup.cores = size;
  std::vector<Ran> ran(static_cast<std::size_t>(size));
  test::Complaints wrong(size);
  test::on_local(
      size,
      [&](Communicator& c) {
        c.observe(&ran[static_cast<std::size_t>(c.rank())]);
        for (int i = 0; i < kNeutralTrialCalls + 5; ++i) wrong.add(c.rank(), sum_once(c, 4000, i));
        for (int i = 0; i < kNeutralTrialCalls + 5; ++i) {
          std::vector<float> in(20'000, static_cast<float>(c.rank())), out(in.size() * 3);
          c.allgather(std::span<const float>(in),
                      std::span(out).first(in.size() * static_cast<std::size_t>(c.size())));
        }
        c.observe(nullptr);
      },
      setup);
  EXPECT_EQ(wrong.text(), "");
  const auto& names = ran[0].names;
  for (const auto& rank : ran) ASSERT_EQ(rank.names, names);
  ASSERT_EQ(names.size(), 2U * (kNeutralTrialCalls + 6));
  const auto half = names.begin() + kNeutralTrialCalls + 6;
  for (const auto& [from, collective] :
       {std::pair{names.begin(), Collective::allreduce}, {half, Collective::allgather}}) {
    std::set<std::string> tried(from, from + kNeutralTrialCalls);
    EXPECT_GE(tried.size(), 2U);
    for (const auto& name : tried)
      EXPECT_TRUE(find_algorithm(collective, name).traits.rank_order) << name;
    EXPECT_EQ(from[kNeutralTrialCalls], "times");
    EXPECT_EQ(
        std::set<std::string>(from + kNeutralTrialCalls + 1, from + kNeutralTrialCalls + 6).size(),
        1U);
  }
  // Threads do not read memory that another may free.
  EXPECT_FALSE(std::set<std::string>(names.begin(), names.end()).contains("pull"));
}

// For an allreduce of a mebibyte two ways through slots are predicted to take the same.
TEST(Trials, unasked_are_of_two_of_a_way_that_are_predicted_to_be_as_good) {
  auto setup = local_trying(-1);
  setup.cores = 2;
  Ran ran;
  test::Complaints wrong(2);
  test::on_local(
      2,
      [&](Communicator& c) {
        if (c.rank() == 0) c.observe(&ran);
        for (int i = 0; i < kNeutralTrialCalls; ++i) wrong.add(c.rank(), sum_once(c, 262'144, i));
        if (c.rank() == 0) c.observe(nullptr);
      },
      setup);
  EXPECT_EQ(wrong.text(), "");
  const std::set<std::string> tried(ran.names.begin(), ran.names.end());
  EXPECT_TRUE(tried.contains("flat") && tried.contains("direct")) << fmt::format("{}", tried);
  EXPECT_LE(tried.size(), kMostTried);
}

// Where ranks share a core, a call by messages returns when its rank has its turn, which says
// little.
TEST(Trials, unasked_are_without_messages_where_ranks_share_cores) {
  auto setup = local_trying(-1);
  setup.cores = 1;
  Ran ran;
  test::on_local(
      3,
      [&](Communicator& c) {
        if (c.rank() == 0) c.observe(&ran);
        std::vector<float> in(300'000, static_cast<float>(c.rank())), out(in.size() * 3);
        for (int i = 0; i < kNeutralTrialCalls + 3; ++i)
          c.allgather(std::span<const float>(in), std::span(out));
        if (c.rank() == 0) c.observe(nullptr);
      },
      setup);
  EXPECT_EQ(std::set<std::string>(ran.names.begin(), ran.names.end()),
            std::set<std::string>{"direct"});
}

TEST(Trials, unasked_are_of_every_way_to_move_bytes_between_processes) {
  const auto wrong = test::fork_ranks(
      2,
      [](const test::Seat& seat) {
        auto c = seat.join("all", trying(-1));
        Ran ran;
        c.observe(&ran);
        std::vector<float> in(20'000, static_cast<float>(c.rank())), out(in.size() * 2);
        for (int i = 0; i < kNeutralTrialCalls + 3; ++i)
          c.allgather(std::span<const float>(in), std::span(out));
        c.observe(nullptr);
        const std::set<std::string> tried(ran.names.begin(),
                                          ran.names.begin() + kNeutralTrialCalls);
        if (tried != std::set<std::string>{"direct", "linear", "pull"})
          seat.tell(fmt::format("tried {}", tried));
        if (out.back() != 1) seat.tell("wrong");
      },
      test::Medium::shm);
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

// Between two ranks all algorithms by messages are predicted to take the same for a broadcast.
TEST(Trials, unasked_have_every_way_before_a_second_of_one) {
  const auto wrong = test::fork_ranks(
      2,
      [](const test::Seat& seat) {
        auto c = seat.join("all", trying(-1));
        Ran ran;
        c.observe(&ran);
        std::vector<float> data(16'384, 1.0F);
        for (int i = 0; i < kNeutralTrialCalls; ++i) c.broadcast(std::span(data), 0);
        c.observe(nullptr);
        const std::set<std::string> tried(ran.names.begin(), ran.names.end());
        if (tried.size() != kMostTried || !tried.contains("direct") || !tried.contains("pull"))
          seat.tell(fmt::format("tried {}", tried));
      },
      test::Medium::shm);
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

TEST(Trials, have_nothing_to_do_where_there_is_one_rank_or_one_algorithm) {
  Ran ran;
  test::on_local(
      1,
      [&](Communicator& c) {
        c.observe(&ran);
        for (int i = 0; i < 10; ++i) EXPECT_EQ(sum_once(c, 100, i), "");
      },
      local_trying(2));
  EXPECT_EQ(std::count(ran.names.begin(), ran.names.end(), "times"), 0);
  // Over sockets a barrier has one algorithm.
  auto sockets = local_trying(2);
  sockets.tcp = true;
  Ran barriers[2];
  test::on_local(
      2,
      [&](Communicator& c) {
        c.observe(&barriers[c.rank()]);
        for (int i = 0; i < 6; ++i) c.barrier();
      },
      sockets);
  EXPECT_EQ(barriers[0].names, Names(6, "dissemination"));
}

TEST(Trials, leave_every_collective_exact_over_local) {
  for (const int size : {1, 2, 3, 5}) {
    test::Complaints wrong(size);
    test::on_local(
        size, [&](Communicator& c) { wrong.add(c.rank(), every_collective(c)); }, local_trying());
    EXPECT_EQ(wrong.text(), "") << size << " ranks";
  }
}

TEST(Trials, leave_every_collective_exact_over_shm_tcp_and_both) {
  for (const auto medium : test::kAllMedia)
    for (const int size : {2, 4}) {
      const auto wrong = test::fork_ranks(
          size,
          [&](const test::Seat& seat) {
            auto c = seat.join("all", trying());
            if (const auto what = every_collective(c); !what.empty()) seat.tell(what);
          },
          medium);
      EXPECT_TRUE(wrong.empty()) << name(medium) << ": " << wrong.front();
    }
}

// Some ranks' buffers lie in memory that all share. Where that alone decides, it does so on all.
TEST(Trials, do_not_depend_on_where_a_ranks_buffers_are) {
  test::Complaints wrong(2);
  Ran ran[2];
  test::on_local(
      2,
      [&](Communicator& c) {
        test::Trial trial{&unnamed(Collective::allreduce), 2};
        trial.shared_buffers = c.rank() == 0;
        for (int i = 0; i < kCalls + 4; ++i) wrong.add(c.rank(), test::attempt(c, trial));
        trial.count = 2'000'000;
        trial.shared_buffers = true;
        c.observe(&ran[c.rank()]);
        for (int i = 0; i < kCalls + 4; ++i) wrong.add(c.rank(), test::attempt(c, trial));
        c.observe(nullptr);
      },
      local_trying());
  EXPECT_EQ(wrong.text(), "");
  EXPECT_EQ(ran[0].names, Names(kCalls + 4, "shared"));
}

TEST(Trials, are_explained_with_what_was_predicted_and_measured) {
  test::on_local(
      2,
      [](Communicator& c) {
        std::vector<float> data(500);
        const auto call = sum_call(data);
        for (int i = 0; i < kCalls; ++i) c.run(call);
        for (const auto& candidate : c.explain(call)) ASSERT_EQ(candidate.measured_us, 0);
        c.run(call);
        const auto moved = c.last_moved();
        EXPECT_GT(moved.sent + moved.received, 0U);
        const auto candidates = c.explain(call);
        int winners = 0;
        for (std::size_t i = 0; i < candidates.size(); ++i) {
          ASSERT_EQ(candidates[i].measured_us > 0, i < 2) << candidates[i].algorithm;
          winners += candidates[i].won ? 1 : 0;
        }
        ASSERT_EQ(winners, 1);
        ASSERT_EQ(candidates[1].won, candidates[1].measured_us <= candidates[0].measured_us * 0.9);
      },
      local_trying());
}

TEST(Trials, beyond_those_that_are_remembered_leave_sums_exact) {
  test::Complaints wrong(2);
  test::on_local(
      2,
      [&](Communicator& c) {
        for (int repeat = 0; repeat < 4; ++repeat)
          for (std::size_t count = 1; count <= 300; ++count)
            wrong.add(c.rank(), sum_once(c, count, repeat));
      },
      local_trying(2));
  EXPECT_EQ(wrong.text(), "");
}

TEST(Trials, of_groups_are_their_own) {
  test::Complaints wrong(5);
  test::on_local(
      5,
      [&](Communicator& c) {
        sum_once(c, 1000, 0);  // in the middle of the parent's
        auto group = c.split(c.rank() < 3 ? 0 : 1, -c.rank());
        auto twin = c.dup();
        for (int i = 0; i < kCalls + 3; ++i)
          for (auto* one : {&group, &c, &twin}) wrong.add(c.rank(), sum_once(*one, 1000, i));
        auto nested = group.split(group.rank() % 2);
        for (int i = 0; i < kCalls + 3; ++i) wrong.add(c.rank(), sum_once(nested, 1000, i));
      },
      local_trying());
  EXPECT_EQ(wrong.text(), "");
}

}  // namespace
}  // namespace sinew
