// Mutants: schedules with one thing wrong. Whatever misbehaves when it is run, in any of many
// seeded orders, the verifier must have refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <tuple>

#include <sinew/algorithms.hpp>
#include <sinew/verify.hpp>
#include "schedule/form.hpp"
#include "support/seeded_world.hpp"

namespace sinew {
namespace {

struct Mutant {
  World world;
  std::string what;
};

bool receives(Op op) { return op == Op::recv || op == Op::recv_reduce; }

// Steps must stay ordered by round and channel.
void put_in_order(Schedule& schedule) {
  std::stable_sort(schedule.steps.begin(), schedule.steps.end(), [](const Step& a, const Step& b) {
    return std::tie(a.round, a.channel) < std::tie(b.round, b.channel);
  });
}

std::vector<Chunks*> operands(Step& step) {
  std::vector<Chunks*> result;
  for (auto* range : {&step.src, &step.dst, &step.board})
    if (range->count > 0) result.push_back(range);
  return result;
}

// Everything that can be done to step i of one rank.
std::vector<std::pair<std::string, std::function<void(Schedule&)>>> changes_of(
    const Schedule& original, std::size_t i) {
  std::vector<std::pair<std::string, std::function<void(Schedule&)>>> changes;
  const Step step = original.steps[i];
  const auto add = [&](std::string what, std::function<void(Schedule&)> change) {
    changes.emplace_back(std::move(what), std::move(change));
  };
  add("dropped",
      [=](Schedule& s) { s.steps.erase(s.steps.begin() + static_cast<std::ptrdiff_t>(i)); });
  add("doubled", [=](Schedule& s) {
    s.steps.insert(s.steps.begin() + static_cast<std::ptrdiff_t>(i), s.steps[i]);
  });
  for (const int by : {-1, 1, 2})
    add(fmt::format("moved by {} rounds", by), [=](Schedule& s) {
      s.steps[i].round = static_cast<std::uint32_t>(static_cast<int>(s.steps[i].round) + by);
      put_in_order(s);
    });
  if (step.peer >= 0)
    for (int peer = 0; peer < original.size; ++peer)
      if (peer != step.peer && peer != original.rank)
        add(fmt::format("redirected to {}", peer), [=](Schedule& s) { s.steps[i].peer = peer; });
  for (std::size_t which = 0; which < 3; ++which) {
    auto copy = step;
    if (which >= operands(copy).size()) continue;
    add("with another chunk", [=](Schedule& s) {
      auto& range = *operands(s.steps[i])[which];
      range.first = (range.first + 1) % std::max(1U, s.chunks[static_cast<std::size_t>(range.buf)]);
    });
  }
  if (step.src.count > 0 && (step.src.buf == Buf::input || step.src.buf == Buf::output))
    add("reading the other buffer", [=](Schedule& s) {
      s.steps[i].src.buf = step.src.buf == Buf::input ? Buf::output : Buf::input;
    });
  if (std::max(step.src.count, step.dst.count) > 1)
    add("with a chunk less", [=](Schedule& s) {
      for (auto* range : operands(s.steps[i])) --range->count;
    });
  const auto turn_into = [&](Op op) {
    add(fmt::format("turned into {}", name(op)), [=](Schedule& s) { s.steps[i].op = op; });
  };
  if (receives(step.op)) turn_into(step.op == Op::recv ? Op::recv_reduce : Op::recv);
  if (step.op == Op::copy) turn_into(Op::reduce);
  if (step.op == Op::reduce) turn_into(Op::copy);
  for (std::size_t j = i + 1; j < original.steps.size(); ++j) {
    if (original.steps[j].op != step.op) continue;
    add(fmt::format("with the chunks of step {}", j), [=](Schedule& s) {
      std::swap(s.steps[i].src, s.steps[j].src);
      std::swap(s.steps[i].dst, s.steps[j].dst);
    });
    add(fmt::format("in the place of step {}", j), [=](Schedule& s) {
      std::swap(s.steps[i].round, s.steps[j].round);
      put_in_order(s);
    });
    break;
  }
  return changes;
}

std::vector<Mutant> mutants_of(const World& world) {
  std::vector<Mutant> mutants;
  for (const auto& schedule : world.ranks)
    for (std::size_t i = 0; i < schedule.steps.size(); ++i)
      for (const auto& [what, change] : changes_of(schedule, i)) {
        Mutant mutant{world, fmt::format("{} {} of {}, rank {}, step {} ({}) {}",
                                         name(world.collective), schedule.name, schedule.size,
                                         schedule.rank, i, name(schedule.steps[i].op), what)};
        auto& mine = mutant.world.ranks[static_cast<std::size_t>(schedule.rank)];
        change(mine);
        if (mutant.world != world) mutants.push_back(std::move(mutant));
      }
  return mutants;
}

bool is_refused(const World& world) {
  return !verify(world, {.sends = Sends::buffered}).ok() ||
         !verify(world, {.sends = Sends::synchronous}).ok();
}

// A fold into others' memory before they said where that is would write anywhere at all, and who
// reads by reference would read anywhere.
bool may_run(const World& world) {
  return std::none_of(world.ranks.begin(), world.ranks.end(), [](const Schedule& schedule) {
    return schedule.by_reference ||
           std::any_of(schedule.steps.begin(), schedule.steps.end(),
                       [](const Step& step) { return step.op == Op::gather_reduce_all; });
  });
}

// The first way in which it goes wrong, if it does.
test::Ending worst_of(const World& world, std::size_t chunk_elements, unsigned orders,
                      bool posts_all) {
  test::SeededWorld runner(world, chunk_elements, posts_all);
  for (unsigned seed = 0; seed < orders; ++seed)
    for (const auto sends : {Sends::synchronous, Sends::buffered})
      if (const auto ending = runner.run(sends, seed); ending != test::Ending::right) return ending;
  return test::Ending::right;
}

struct Counts {
  std::size_t all = 0, malformed = 0, refused = 0, not_run = 0, misbehaved = 0, harmless = 0,
              accepted = 0;
};

void expect_refusals(const Algorithm& algorithm, int size, std::size_t most, unsigned orders,
                     Counts& counts) {
  const auto world = make_world(algorithm, size, size / 2, 2);
  auto mutants = mutants_of(world);
  std::mt19937 random(static_cast<unsigned>(size));
  std::shuffle(mutants.begin(), mutants.end(), random);
  if (mutants.size() > most) mutants.resize(most);
  for (const auto& [mutant, what] : mutants) {
    ++counts.all;
    if (malformed(mutant)) {
      ++counts.malformed;
      continue;
    }
    const bool refused = is_refused(mutant);
    ++(refused ? counts.refused : counts.accepted);
    if (refused && !may_run(mutant)) {
      ++counts.not_run;
      continue;
    }
    const auto ending = worst_of(mutant, counts.all % 2 == 0 ? 1 : 24, orders, true);
    ++(ending == test::Ending::right ? counts.harmless : counts.misbehaved);
    EXPECT_TRUE(refused || ending == test::Ending::right)
        << what << " is accepted but ends in: " << name(ending);
  }
}

TEST(Mutants, all_that_misbehave_in_some_order_are_refused) {
  const bool full = std::getenv("SINEW_FULL") != nullptr;
  Counts counts;
  for (const auto& algorithm : algorithms())
    for (int size = 2; size <= (full ? 5 : 4); ++size) {
      if (!algorithm.fits({0, size, 0, 2, {}}, kOneHost)) continue;
      expect_refusals(algorithm, size, ~std::size_t{0}, full ? 100 : 10, counts);
    }
  fmt::print(
      "{} mutants: {} malformed, {} refused by the verifier ({} of them not run), {} accepted; of "
      "those run {} misbehave and {} do not\n",
      counts.all, counts.malformed, counts.refused, counts.not_run, counts.accepted,
      counts.misbehaved, counts.harmless);
  EXPECT_GT(counts.misbehaved, counts.all / 4);  // or this test shows nothing
}

TEST(SeededOrders, every_untouched_schedule_ends_right_in_all_of_them) {
  for (const auto& algorithm : algorithms())
    for (const int size : {1, 2, 3, 4, 5, 7}) {
      if (!algorithm.fits({0, size, 0, 2, {}}, kOneHost)) continue;
      const auto world = make_world(algorithm, size, size / 2, 2);
      for (const std::size_t elements : {1U, 24U, 200U})
        for (const bool posts_all : {false, true})
          EXPECT_EQ(worst_of(world, elements, 5, posts_all), test::Ending::right)
              << name(algorithm.collective) << " " << algorithm.name << " of " << size;
    }
}

TEST(SeededOrders, on_several_nodes_as_well) {
  const int nodes[] = {0, 0, 1, 1, 1};
  for (const auto& algorithm : algorithms()) {
    if (algorithm.name != "two_level") continue;
    const auto world = make_world(algorithm, 5, 3, 1, nodes);
    for (const std::size_t elements : {1U, 24U, 200U})
      EXPECT_EQ(worst_of(world, elements, 20, false), test::Ending::right)
          << name(algorithm.collective);
  }
}

}  // namespace
}  // namespace sinew
