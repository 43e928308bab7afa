// Loops in the order of calls.
#include "trace/phases.hpp"

#include <gtest/gtest.h>

#include <random>

#include <sinew/trace.hpp>

namespace sinew::trace {
namespace {

/// A trace of allreduces of these sizes, each 10 ns long and 100 ns after the last.
Trace trace_of(const std::vector<std::uint64_t>& sizes) {
  Trace trace;
  trace.notes[{NoteKind::routine, 1}] = "MPI_Allreduce";
  std::map<std::uint64_t, std::size_t> counter_of;
  std::uint64_t now = 1000;
  for (const auto bytes : sizes) {
    const auto [entry, is_new] = counter_of.try_emplace(bytes, trace.counters.size());
    if (is_new) {
      Counter counter;
      counter.key.kind = static_cast<std::uint8_t>(EventKind::call);
      counter.key.operation = 1;
      counter.key.communicator = 7;
      counter.key.bytes = bytes;
      trace.counters.push_back(counter);
    }
    trace.records.push_back({entry->second, now, 10, 0, 0, 1});
    now += 100;
  }
  return trace;
}

using Sizes = std::vector<std::uint64_t>;

void repeat(Sizes& sizes, const Sizes& round, int times) {
  for (int i = 0; i < times; ++i) sizes.insert(sizes.end(), round.begin(), round.end());
}

/// 31 small allreduces for agreement, then three of gradients, as Horovod does a step.
Sizes training_step() {
  Sizes step(31, 8);
  for (const auto bytes : {5640, 75128, 4719152}) step.push_back(static_cast<std::uint64_t>(bytes));
  return step;
}

TEST(Phases, the_outer_loop_is_found_though_an_inner_one_repeats_too) {
  Sizes sizes{4, 16, 400, 4};  // before the loop
  repeat(sizes, training_step(), 236);
  const auto phases = find_phases(trace_of(sizes));
  ASSERT_EQ(phases.size(), 1U);
  EXPECT_EQ(phases[0].calls, 34U);
  EXPECT_GE(phases[0].rounds, 235U);
  EXPECT_DOUBLE_EQ(phases[0].median_ns, 3400);
  EXPECT_NEAR(phases[0].in_calls_ns, 340, 1e-6);
  EXPECT_FALSE(phases[0].sizes_vary);
  ASSERT_EQ(phases[0].pattern.size(), 4U);
  std::size_t small = 0;
  for (const auto& call : phases[0].pattern)
    if (call.bytes == 8) small = call.calls;
  EXPECT_EQ(small, 31U);
}

TEST(Phases, a_change_of_the_pattern_begins_another_phase) {
  Sizes sizes;
  repeat(sizes, {1000, 2000, 3000}, 40);
  repeat(sizes, {1000, 64}, 60);
  const auto phases = find_phases(trace_of(sizes));
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[0].calls, 3U);
  EXPECT_EQ(phases[0].rounds, 40U);
  EXPECT_EQ(phases[1].calls, 2U);
  EXPECT_GE(phases[1].rounds, 59U);
  EXPECT_GT(phases[1].begin_ns, phases[0].begin_ns);
}

TEST(Phases, sizes_that_change_each_time_are_one_phase) {
  Sizes sizes;
  for (std::uint64_t i = 0; i < 100; ++i) sizes.push_back(1000 + 7 * i);
  const auto phases = find_phases(trace_of(sizes));
  ASSERT_EQ(phases.size(), 1U);
  EXPECT_TRUE(phases[0].sizes_vary);
  EXPECT_EQ(phases[0].rounds, 100U);
}

TEST(Phases, where_nothing_repeats_nothing_is_found) {
  EXPECT_TRUE(find_phases(trace_of({})).empty());
  EXPECT_TRUE(find_phases(trace_of({8})).empty());
  auto trace = trace_of({1, 2, 3, 4, 5, 6, 7, 8});
  for (std::size_t i = 0; i < trace.counters.size(); ++i)
    trace.counters[i].key.communicator = static_cast<std::uint32_t>(i + 1);
  EXPECT_TRUE(find_phases(trace).empty());
}

TEST(Phases, a_long_random_order_is_given_up_soon) {
  std::mt19937 random(1);
  Sizes sizes;
  for (int i = 0; i < 1'000'000; ++i) sizes.push_back(8U << random() % 10);
  const auto phases = find_phases(trace_of(sizes));
  for (const auto& phase : phases) EXPECT_TRUE(phase.sizes_vary);
}

}  // namespace
}  // namespace sinew::trace
