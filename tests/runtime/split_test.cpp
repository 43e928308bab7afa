// Groups within groups: as deep as one likes, and a death on the way is named like any other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <limits>
#include <random>
#include <thread>

#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

// Twelve levels, with the longest label there is.
void split_twelve_times(Communicator& all) {
  constexpr int kColor = std::numeric_limits<int>::max();
  std::vector<Communicator> levels;
  for (int level = 0; level < 12; ++level) {
    auto& parent = levels.empty() ? all : levels.back();
    levels.push_back(parent.split(kColor - level, -parent.rank()));  // the order turns each time
  }
  for (auto& group : levels) {
    std::vector<std::int32_t> sum{group.rank() + 1};
    group.allreduce(std::span(sum));
    if (sum[0] != 6) throw Error(Errc::system, fmt::format("a sum of {}", sum[0]));
  }
  if (levels.back().rank() != all.rank()) throw Error(Errc::system, "ranks are out of order");
}

TEST(Split, twelve_levels_deep_over_local_and_shm) {
  test::on_local(3, split_twelve_times);
  const auto told = test::fork_ranks(3, [](const test::Seat& seat) {
    auto communicator = seat.join(std::string(40, 'x'));
    split_twelve_times(communicator);
  });
  EXPECT_TRUE(told.empty()) << told.front();
}

std::int64_t now_ms() { return Clock::now().time_since_epoch().count() / 1'000'000; }

void split_until_it_breaks(const test::Seat& seat) {
  const int descriptors = test::open_descriptors();
  {
    auto all = seat.join("life", {.timeout = 30s});
    all.barrier();
    seat.tell("ready");
    try {
      while (true) (void)all.split(all.rank() % 2, -all.rank());
    } catch (const Error& error) {
      seat.tell(fmt::format("{} {} {} {}", name(error.code()), error.context().peer, now_ms(),
                            error.what()));
    }
  }
  if (test::open_descriptors() != descriptors) seat.tell("leaks descriptors");
  if (test::maps_a_segment()) seat.tell("leaks the segment");
}

void kill_one(unsigned seed) {
  std::mt19937 random(seed);
  const int size = 3 + static_cast<int>(random() % 4);
  const int victim = static_cast<int>(random() % static_cast<unsigned>(size));
  const auto story = fmt::format("seed {}: rank {} of {}", seed, victim, size);
  test::ForkedRanks ranks(size, split_until_it_breaks);
  ASSERT_TRUE(ranks.wait_for_lines(1, 20s)) << story;
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
  const auto killed = now_ms();
  ranks.signal(victim, SIGKILL);
  const auto all = ranks.finish(20s);
  for (int rank = 0; rank < size; ++rank) {
    if (rank == victim) continue;
    const auto& lines = all[static_cast<std::size_t>(rank)].lines;
    ASSERT_EQ(lines.size(), 2U) << story << ", survivor " << rank << ": "
                                << (lines.empty() ? "" : lines.back());
    const auto expected = fmt::format("peer lost {} ", victim);
    ASSERT_TRUE(lines[1].starts_with(expected))
        << story << ", survivor " << rank << ": " << lines[1];
    EXPECT_NE(lines[1].find(fmt::format("rank {} (pid ", victim)), std::string::npos) << lines[1];
    EXPECT_LT(std::stoll(lines[1].substr(expected.size())) - killed, 1000) << story << lines[1];
  }
}

TEST(Split, a_death_on_the_way_is_named_by_every_survivor_within_a_second) {
  const unsigned trials = std::getenv("SINEW_FULL") != nullptr ? 300 : 15;
  for (unsigned seed = 1; seed <= trials && !HasFatalFailure(); ++seed) kill_one(seed);
}

}  // namespace
}  // namespace sinew
