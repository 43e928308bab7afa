// The page to play with: what chunks hold round by round, and verdicts on changed steps.
#include "schedule/replay.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include <sinew/algorithms.hpp>
#include <sinew/draw.hpp>
#include <sinew/error.hpp>
#include <sinew/verify.hpp>

namespace sinew {
namespace {

World world_of(Collective collective, std::string_view algorithm, int size) {
  return make_world(find_algorithm(collective, algorithm), size);
}

/// Those that four ranks on one node can run.
std::vector<const Algorithm*> algorithms_for_four(Collective collective) {
  Place place;
  place.size = 4;
  std::vector<const Algorithm*> fitting;
  for (const auto& algorithm : algorithms())
    if (algorithm.collective == collective && algorithm.fits(place, kOneHost))
      fitting.push_back(&algorithm);
  return fitting;
}

TEST(Replay, an_allreduce_ends_with_every_rank_in_every_chunk) {
  for (const auto* algorithm : algorithms_for_four(Collective::allreduce)) {
    const auto world = make_world(*algorithm, 4);
    std::map<std::pair<int, std::uint32_t>, std::vector<Leaf>> outputs;
    std::uint32_t round = 0;
    for (const auto& change : replay(world)) {
      EXPECT_GE(change.round, round) << "in the order of rounds";
      round = change.round;
      if (change.buf == Buf::output) outputs[{change.rank, change.chunk}] = change.holds;
    }
    const auto chunks = world.ranks[0].chunks[1];
    ASSERT_EQ(outputs.size(), 4U * chunks) << algorithm->name;
    for (const auto& [at, holds] : outputs)
      EXPECT_EQ(holds,
                (std::vector<Leaf>{{0, at.second}, {1, at.second}, {2, at.second}, {3, at.second}}))
          << algorithm->name;
  }
}

TEST(Replay, chunks_fill_up_one_rank_a_round_in_a_ring) {
  std::map<std::uint32_t, std::set<std::size_t>> sizes;  // by round
  for (const auto& change : replay(world_of(Collective::allreduce, "ring", 4)))
    sizes[change.round].insert(change.holds.size());
  EXPECT_EQ(sizes[0], (std::set<std::size_t>{1}));
  EXPECT_EQ(sizes[1], (std::set<std::size_t>{2}));
  EXPECT_EQ(sizes[3], (std::set<std::size_t>{4}));
  EXPECT_EQ(sizes[6], (std::set<std::size_t>{4}));
}

TEST(Replay, refuses_a_world_that_does_not_verify) {
  auto world = world_of(Collective::allreduce, "ring", 3);
  world.ranks[1].steps.pop_back();
  EXPECT_THROW(replay(world), Error);
  EXPECT_THROW(draw_html(world, "sinew draw"), Error);
}

TEST(Edits, are_judged_as_the_verifier_judges_them) {
  const auto world = world_of(Collective::allreduce, "ring", 4);
  std::size_t without = 0, overwriting = 0;
  for (const auto& edit : try_edits(world)) {
    auto changed = world;
    auto& steps = changed.ranks[static_cast<std::size_t>(edit.rank)].steps;
    const auto at = steps.begin() + static_cast<std::ptrdiff_t>(edit.step);
    if (edit.what == "without it") {
      ++without;
      steps.erase(at);
    } else {
      ++overwriting;
      at->op = Op::recv;
    }
    EXPECT_TRUE(edit.refused) << edit.what << ' ' << edit.verdict;
    EXPECT_FALSE(verify(changed).ok());
  }
  EXPECT_EQ(without, 52U);
  EXPECT_EQ(overwriting, 12U);
}

// A step that does nothing may go.
TEST(Edits, accept_what_nobody_misses) {
  auto world = world_of(Collective::allreduce, "ring", 2);
  for (auto& schedule : world.ranks) {
    auto idle = schedule.steps.front();
    schedule.chunks[2] = 1;
    schedule.scratch_like = {0};
    idle.dst = {Buf::scratch, 0, 1};
    idle.src = {Buf::input, 0, 1};
    schedule.steps.insert(schedule.steps.begin(), idle);
  }
  std::size_t accepted = 0;
  for (const auto& edit : try_edits(world)) accepted += edit.refused ? 0 : 1;
  EXPECT_EQ(accepted, 2U);
}

TEST(Page, holds_everything_and_calls_nobody) {
  for (const auto collective : {Collective::allreduce, Collective::alltoall, Collective::broadcast})
    for (const auto* algorithm : algorithms_for_four(collective)) {
      const auto page = draw_html(make_world(*algorithm, 4), "sinew draw <x>");
      EXPECT_EQ(page.find("{{"), std::string::npos) << "a place was left empty";
      EXPECT_NE(page.find("sinew draw &lt;x&gt;"), std::string::npos);
      EXPECT_EQ(page.find("src="), std::string::npos);
      EXPECT_EQ(page.find("http:"), page.find("http://www.w3.org/2000/svg"));
      EXPECT_LT(page.size(), 500'000U);
    }
}

TEST(Page, of_too_many_ranks_is_refused_with_advice) {
  try {
    draw_html(world_of(Collective::allreduce, "ring", 32), "sinew draw");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--format svg"), std::string::npos);
  }
}

}  // namespace
}  // namespace sinew
