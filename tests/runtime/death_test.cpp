// Ranks that die, leave or stop: everyone else is told who, soon, and nothing is left behind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "support/fork_ranks.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

std::set<std::string> named_segments() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().find("sinew") != std::string::npos)
      names.insert(entry.path());
  return names;
}

std::int64_t now_ns() { return Clock::now().time_since_epoch().count(); }

// What every rank runs until something breaks: one collective again and again.
struct Work {
  const Algorithm* algorithm;
  std::size_t count;
  void operator()(Communicator& c, std::vector<float>& in, std::vector<float>& out) const {
    c.run({.collective = algorithm->collective,
           .input = in.data(),
           .output = out.data(),
           .count = count,
           .options = {.algorithm = algorithm->name}});
  }
};

Work random_work(std::mt19937& random, int size, test::Medium medium) {
  while (true) {
    const auto& algorithm = algorithms()[random() % algorithms().size()];
    if (!algorithm.fits({0, size, 0, 1, {}}, {medium == test::Medium::shm, false})) continue;
    const std::size_t counts[] = {1, 100, 5000, 100'000};
    return {&algorithm, algorithm.collective == Collective::barrier ? 0 : counts[random() % 4]};
  }
}

// "ready", then the error's code, peer, time and text, then what was leaked.
void live_until_it_breaks(const test::Seat& seat, const Work& work) {
  const int descriptors = test::open_descriptors();
  {
    auto communicator = seat.join("life", {.timeout = 20s});
    std::vector<float> in(work.count * static_cast<std::size_t>(seat.size) + 1), out(in.size());
    communicator.barrier();
    seat.tell("ready");
    try {
      // A root that only sends would run far ahead; now and then all meet.
      for (int i = 0;; ++i) i % 16 == 15 ? communicator.barrier() : work(communicator, in, out);
    } catch (const Error& error) {
      seat.tell(fmt::format("{} {} {}", name(error.code()), error.context().peer, now_ns()));
      const std::string first = error.what();
      const auto again = Clock::now();
      try {
        communicator.barrier();
        seat.tell("the next call did not fail");
      } catch (const Error& second) {
        if (first != second.what())
          seat.tell(fmt::format("the next call fails otherwise: {}", second.what()));
        if (Clock::now() - again > 100ms) seat.tell("the next call did not fail at once");
      }
    }
  }
  if (test::open_descriptors() != descriptors) seat.tell("leaks descriptors");
  if (test::maps_a_segment()) seat.tell("leaks the segment");
}

void kill_one(unsigned seed, test::Medium medium) {
  std::mt19937 random(seed);
  const int size = 2 + static_cast<int>(random() % 7);
  const int victim = static_cast<int>(random() % static_cast<unsigned>(size));
  const auto work = random_work(random, size, medium);
  const auto story =
      fmt::format("seed {}: rank {} of {} over {} in {} {} of {}", seed, victim, size, name(medium),
                  name(work.algorithm->collective), work.algorithm->name, work.count);
  test::ForkedRanks ranks(
      size, [&](const test::Seat& seat) { live_until_it_breaks(seat, work); }, medium);
  ASSERT_TRUE(ranks.wait_for_lines(1, 20s)) << story;
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
  const auto killed = now_ns();
  ranks.signal(victim, SIGKILL);
  const auto all = ranks.finish(20s);
  for (int rank = 0; rank < size; ++rank) {
    const auto& told = all[static_cast<std::size_t>(rank)];
    if (rank == victim) {
      EXPECT_EQ(told.status, 128 + SIGKILL) << story;
      continue;
    }
    ASSERT_EQ(told.lines.size(), 2U)
        << story << ", survivor " << rank << ": " << (told.lines.empty() ? "" : told.lines.back());
    EXPECT_EQ(told.status, 0) << story;
    const auto expected = fmt::format("peer lost {} ", victim);
    ASSERT_EQ(told.lines[1].substr(0, expected.size()), expected)
        << story << ", survivor " << rank << ": " << told.lines[1];
    const auto took_ms = (std::stoll(told.lines[1].substr(expected.size())) - killed) / 1'000'000;
    EXPECT_LT(took_ms, 1000) << story;
  }
}

class Death : public testing::TestWithParam<test::Medium> {};
class Leaving : public Death {};
class Stopped : public Death {};
const auto kMediumName = [](const auto& medium) { return std::string(name(medium.param)); };
INSTANTIATE_TEST_SUITE_P(Over, Death, testing::ValuesIn(test::kMedia), kMediumName);
INSTANTIATE_TEST_SUITE_P(Over, Leaving, testing::ValuesIn(test::kMedia), kMediumName);
INSTANTIATE_TEST_SUITE_P(Over, Stopped, testing::ValuesIn(test::kMedia), kMediumName);

TEST_P(Death, by_kill_9_is_noticed_by_every_survivor_within_a_second_and_leaves_nothing) {
  const auto before = named_segments();
  const int descriptors = test::open_descriptors();
  const unsigned trials = std::getenv("SINEW_FULL") != nullptr ? 200 : 20;
  for (unsigned seed = 1; seed <= trials && !HasFatalFailure(); ++seed) kill_one(seed, GetParam());
  EXPECT_EQ(named_segments(), before);
  EXPECT_EQ(test::open_descriptors(), descriptors);
}

TEST_P(Death, is_noticed_by_whoever_waits_for_a_message) {
  test::ForkedRanks ranks(
      2,
      [](const test::Seat& seat) {
        auto communicator = seat.join("message", {.timeout = 20s});
        communicator.barrier();
        seat.tell("ready");
        std::vector<float> data(10);
        try {
          communicator.recv(std::span(data), 1 - seat.rank, 4);
        } catch (const Error& error) {
          seat.tell(fmt::format("{} {}", name(error.code()), error.context().peer));
        }
      },
      GetParam());
  ASSERT_TRUE(ranks.wait_for_lines(1, 20s));
  ranks.signal(1, SIGKILL);
  const auto all = ranks.finish(10s);
  ASSERT_EQ(all[0].lines.size(), 2U);
  EXPECT_EQ(all[0].lines[1], "peer lost 1");
}

TEST_P(Leaving, while_others_wait_is_an_error_that_names_the_rank) {
  for (const auto algorithm : {"ring", "direct", "flat"}) {
    if (GetParam() == test::Medium::tcp && algorithm != std::string_view("ring")) continue;
    test::ForkedRanks ranks(
        3,
        [&](const test::Seat& seat) {
          auto communicator = seat.join("leave", {.timeout = 20s});
          std::vector<float> data(1000);
          communicator.allreduce(std::span(data), ReduceOp::sum, {.algorithm = algorithm});
          if (seat.rank == 2) return;
          try {
            communicator.allreduce(std::span(data), ReduceOp::sum, {.algorithm = algorithm});
          } catch (const Error& error) {
            seat.tell(
                fmt::format("{} {} {}", name(error.code()), error.context().peer, error.what()));
          }
        },
        GetParam());
    const auto all = ranks.finish(15s);
    EXPECT_EQ(all[2].status, 0);
    for (const int rank : {0, 1}) {
      ASSERT_EQ(all[static_cast<std::size_t>(rank)].lines.size(), 1U) << algorithm;
      const auto& line = all[static_cast<std::size_t>(rank)].lines[0];
      EXPECT_EQ(line.substr(0, 12), "peer lost 2 ") << line;
      EXPECT_NE(line.find("rank 2 has left after operation #1"), std::string::npos) << line;
    }
  }
}

TEST_P(Leaving, after_the_last_operation_disturbs_nobody) {
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto stories = test::fork_ranks(
        5,
        [](const test::Seat& seat) {
          auto communicator = seat.join();
          std::vector<float> data(30'000, 1);
          for (const auto algorithm :
               {"ring", seat.medium == test::Medium::shm ? "direct" : "linear", "chain"})
            communicator.allreduce(std::span(data), ReduceOp::sum, {.algorithm = algorithm});
          if (data[29'999] != 125) seat.tell("wrong sum");
        },
        GetParam());
    EXPECT_TRUE(stories.empty()) << stories.front();
  }
}

// `before`: the stopped rank has not entered the call; otherwise it is stopped inside.
void expect_late_rank_named(test::Medium medium, bool before) {
  test::ForkedRanks ranks(
      3,
      [&](const test::Seat& seat) {
        auto communicator = seat.join("stop", {.timeout = 700ms});
        std::vector<float> data(100);
        communicator.barrier();
        if (seat.rank == 2 && before) {
          seat.tell("ready");
          std::this_thread::sleep_for(30s);
        }
        if (seat.rank == 2) {
          // Inside the operation, and not done with it: nobody has come to receive.
          communicator.start({.collective = Collective::allreduce,
                              .input = data.data(),
                              .output = data.data(),
                              .count = 100,
                              .options = {.algorithm = "ring"}});
          seat.tell("ready");
          std::this_thread::sleep_for(30s);
        }
        seat.tell("ready");
        std::this_thread::sleep_for(50ms);
        try {
          communicator.allreduce(std::span(data), ReduceOp::sum, {.algorithm = "ring"});
        } catch (const Error& error) {
          seat.tell(fmt::format("{} {}", name(error.code()), error.what()));
        }
      },
      medium);
  ASSERT_TRUE(ranks.wait_for_lines(1, 20s));
  ranks.signal(2, SIGSTOP);
  ASSERT_FALSE(ranks.wait_for_lines(2, 2500ms));  // the stopped one never tells
  const auto all = [&] {
    ranks.signal(2, SIGKILL);
    return ranks.finish(10s);
  }();
  for (const int rank : {0, 1}) {
    const auto& lines = all[static_cast<std::size_t>(rank)].lines;
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[1].substr(0, 8), "timeout ") << lines[1];
    const bool absent = lines[1].find("rank 2 has not entered it") != std::string::npos;
    const bool silent = lines[1].find("rank 2 has entered it but is silent") != std::string::npos;
    // Over sockets rank 1 cannot know that it was entered: rank 2 sends to rank 0 only.
    EXPECT_TRUE(before ? absent : silent || (absent && medium == test::Medium::tcp)) << lines[1];
  }
}

TEST_P(Stopped, a_rank_that_has_not_come_is_named_at_the_deadline) {
  expect_late_rank_named(GetParam(), true);
}
TEST_P(Stopped, a_rank_stopped_inside_is_named_at_the_deadline) {
  expect_late_rank_named(GetParam(), false);
}

}  // namespace
}  // namespace sinew
