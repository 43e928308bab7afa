// Thousands of small lives, each by a seed: ranks that sum, crash, pause, lose each other for a
// while, shrink and go on, with the production code under a simulated network and clock.
//
//   simulation_test --seed=17      one seed again, told step by step
//   simulation_test --seeds=100000 more of them
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>

#include "support/simulated_world.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
using test::Fate;
using test::SimTime;

constexpr int kSteps = 12;

std::optional<std::uint64_t> option(const std::string& name) {
  const auto key = "--" + name + "=";
  for (const auto& word : testing::internal::GetArgvs())
    if (word.starts_with(key)) return std::strtoull(word.c_str() + key.size(), nullptr, 10);
  return {};
}

Fate fate_of(std::uint64_t seed) {
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15U + 1);
  const auto up_to = [&](std::uint64_t most) { return random() % (most + 1); };
  Fate fate;
  fate.size = 2 + static_cast<int>(up_to(3));
  const SimTime delays[] = {10us, 200us, 5ms};
  fate.longest_delay = delays[up_to(2)];
  const auto any_time = [&] {
    return SimTime(random() % (kSteps * 4 * fate.longest_delay.count() + 1'000'000));
  };
  const auto any_rank = [&] {
    return static_cast<int>(random() % static_cast<unsigned>(fate.size));
  };
  for (auto crashes = up_to(2); crashes > 0; --crashes) fate.crashes[any_rank()] = any_time();
  const auto while_long = [&] { return SimTime(50ms) * static_cast<int>(1 + up_to(80)); };
  if (up_to(3) == 0) {
    const auto from = any_time();
    fate.pauses.push_back({any_rank(), from, from + while_long()});
  }
  if (up_to(4) == 0) {
    const auto from = any_time();
    fate.cuts.push_back(
        {std::vector<bool>(static_cast<std::size_t>(fate.size)), from, from + while_long()});
    for (int rank = 0; rank < fate.size; ++rank)
      fate.cuts.back().side[static_cast<std::size_t>(rank)] = up_to(1) == 0;
  }
  if (up_to(7) == 0)
    fate.jumps[any_rank()] = {any_time(), SimTime(1s) * static_cast<int>(1 + up_to(3600))};
  return fate;
}

// What the ranks of one life report, and what is wrong with it.
struct Life {
  explicit Life(Fate f) : fate(std::move(f)), ends(static_cast<std::size_t>(fate.size)) {}
  Fate fate;
  std::vector<std::string> ends;                                  // how it ended for each rank
  std::map<std::uint32_t, std::map<int, std::uint64_t>> members;  // epoch: rank: bits of its group
  std::vector<std::string> faults, story;

  void tell(int rank, const std::string& what) {
    story.push_back(fmt::format("rank {}: {}", rank, what));
  }

  // Sums are of one bit a rank, so that a sum says who took part.
  void check_sum(const Communicator& c, int self, std::uint64_t bits, std::uint64_t scale,
                 std::uint64_t sum) {
    const auto group = sum / scale;
    if (sum % scale != 0 || std::popcount(group) != c.size() || (group & bits) == 0 ||
        group >> fate.size != 0)
      faults.push_back(fmt::format("rank {} got {} of {} ranks", self, sum, c.size()));
    const auto [at, fresh] = members[c.epoch()].try_emplace(self, group);
    if (!fresh && at->second != group) faults.push_back("a group changes within an epoch");
  }
};

void live(Communicator& first, Life& life) {
  const int self = first.rank();
  const auto bits = std::uint64_t{1} << self;
  auto c = std::move(first);
  std::uint64_t step = 0;
  while (step < kSteps) {
    std::string trouble;
    try {
      std::vector<std::uint64_t> sum(1 + step % 5, bits * (step + 1));
      c.allreduce(std::span(sum));
      for (const auto value : sum) life.check_sum(c, self, bits, step + 1, value);
      ++step;
    } catch (const Error& error) {
      trouble = error.what();
    }
    if (trouble.empty()) continue;
    life.tell(self, trouble);
    std::optional<Communicator> next;
    try {
      next.emplace(c.shrink());
      c = std::move(*next);
      // Some may have finished a step that others have not: all go on from the earliest.
      std::vector<std::uint64_t> earliest{step};
      c.allreduce(std::span(earliest), ReduceOp::min);
      step = earliest[0];
      life.tell(self, fmt::format("rank {} of {} in epoch {}, from step {}", c.rank(), c.size(),
                                  c.epoch(), step));
    } catch (const Error& error) {
      trouble = fmt::format("{}: {}", name(error.code()), error.what());
      if (error.code() == Errc::peer_lost || error.code() == Errc::timeout) {
        if (error.context().operation != "shrink") continue;
      }
      life.ends[static_cast<std::size_t>(self)] = trouble;
    }
    if (!life.ends[static_cast<std::size_t>(self)].empty()) return;
  }
  life.ends[static_cast<std::size_t>(self)] = "done";
}

std::vector<std::string> live_through(std::uint64_t seed, const Fate& fate,
                                      std::vector<std::string>* story, std::uint64_t* turns) {
  Life life(fate);
  test::SimulatedWorld world(fate, seed);
  const bool ended = world.run([&](Communicator& c) { live(c, life); }, {.timeout = 1s}, 300s);
  if (!ended) life.faults.push_back("somebody hangs");
  for (int rank = 0; rank < fate.size; ++rank) {
    const auto& end = life.ends[static_cast<std::size_t>(rank)];
    life.tell(rank, world.has_crashed(rank) ? "crashed" : end);
    if (ended && !world.has_crashed(rank) && end != "done" && fate.is_only_crashes())
      life.faults.push_back(fmt::format("rank {} lives and does not go on: {}", rank, end));
  }
  // In one epoch there is one group; or the other is all dead.
  for (const auto& [epoch, groups] : life.members)
    for (const auto& [a, one] : groups)
      for (const auto& [b, other] : groups)
        if (one != other && !world.has_crashed(a) && !world.has_crashed(b) && a < b)
          life.faults.push_back(fmt::format("epoch {}: rank {} is with {:b}, rank {} with {:b}",
                                            epoch, a, one, b, other));
  if (story != nullptr) *story = life.story;
  if (turns != nullptr) *turns += world.turns();
  return life.faults;
}

TEST(Simulation, whatever_happens_results_are_right_and_one_group_goes_on) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot follow fibers";
#endif
  if (const auto seed = option("seed")) {
    std::vector<std::string> story;
    const auto faults = live_through(*seed, fate_of(*seed), &story, nullptr);
    fmt::print("{}\n", fmt::join(story, "\n"));
    EXPECT_TRUE(faults.empty()) << fmt::format("{}", fmt::join(faults, "\n"));
    return;
  }
  const auto seeds = option("seeds").value_or(std::getenv("SINEW_FULL") != nullptr ? 20'000 : 2000);
  std::uint64_t turns = 0;
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    const auto faults = live_through(seed, fate_of(seed), nullptr, &turns);
    EXPECT_TRUE(faults.empty()) << "seed " << seed << ": "
                                << fmt::format("{}", fmt::join(faults, "\n"));
  }
  fmt::print("{} seeds, {} turns\n", seeds, turns);
}

// The checks must object to what is wrong.
TEST(Simulation, finds_a_changed_bit_and_a_split_group) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot follow fibers";
#endif
  std::uint64_t changed = 0, split = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    auto fate = fate_of(seed);
    fate.changes_a_bit = true;
    changed += live_through(seed, fate, nullptr, nullptr).empty() ? 0 : 1;
    fate = fate_of(seed);
    fate.silence_is_death = true;
    for (const auto& fault : live_through(seed, fate, nullptr, nullptr))
      split += fault.find("is with") != std::string::npos ? 1 : 0;
  }
  fmt::print("{} of 300 seeds find a changed bit, {} finds of a split group\n", changed, split);
  EXPECT_GT(changed, 100U);
  EXPECT_GT(split, 0U);
}

}  // namespace
}  // namespace sinew
