// A death at any point of any algorithm: nobody waits for ever.
#include "schedule/crash.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "collective/sweep.hpp"

namespace sinew {
namespace {

const bool kFull = std::getenv("SINEW_FULL") != nullptr;

TEST(Crash, at_any_point_of_any_algorithm_leaves_nobody_waiting) {
  std::uint64_t states = 0, endings = 0, worlds = 0;
  for (const auto& algorithm : algorithms())
    for (int size = 2; size <= 4; ++size)
      for (const auto& setting : settings(algorithm, size)) {
        if (setting.segments > 2 && !kFull) continue;
        const auto world = setting.world();
        for (const auto sends : {Sends::buffered, Sends::synchronous}) {
          const auto verdict = explore_crash(world, {.sends = sends});
          ++worlds;
          states += verdict.states;
          endings += verdict.endings;
          ASSERT_FALSE(verdict.fault)
              << to_string(setting) << ": rank " << verdict.fault->rank << ", round "
              << verdict.fault->round << ": " << verdict.fault->why;
        }
      }
  fmt::print("{} worlds, {} states, {} endings\n", worlds, states, endings);
}

TEST(Crash, without_news_of_it_somebody_hangs_and_is_named) {
  const auto world = make_world(find_algorithm(Collective::allreduce, "ring"), 4);
  const auto verdict = explore_crash(world, {.spreads_news = false});
  ASSERT_TRUE(verdict.fault);
  EXPECT_NE(verdict.fault->why.find("for ever"), std::string::npos) << verdict.fault->why;
  EXPECT_FALSE(explore_crash(world).fault);
}

TEST(Crash, finds_a_schedule_that_hangs_by_itself) {
  auto world = make_world(find_algorithm(Collective::allreduce, "ring"), 3);
  std::erase_if(world.ranks[1].steps, [](const Step& step) { return step.op == Op::send; });
  EXPECT_TRUE(explore_crash(world).fault);
}

}  // namespace
}  // namespace sinew
