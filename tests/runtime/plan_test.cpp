// What a plan decides about how bytes are written, and what the planner tells it for that.
#include "runtime/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <sinew/algorithms.hpp>
#include "runtime/planner.hpp"
#include "transport/local/local.hpp"

namespace sinew {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Buffers {
  std::vector<std::size_t> input, output;  // bytes of each part
};

// One rank's plan on bytes.
Plan bind(Collective collective, std::string_view name, int ranks, const Buffers& buffers,
          bool over_input) {
  auto schedule = find_algorithm(collective, name).make({1, ranks, 0, 1, {}});
  const auto cut = [](std::uint32_t chunks, const std::vector<std::size_t>& parts) {
    return map_parts(parts, chunks / static_cast<std::uint32_t>(parts.size()), 1);
  };
  Binding binding;
  binding.input = cut(schedule.chunks[0], buffers.input);
  binding.output = cut(schedule.chunks[1], buffers.output);
  binding.dtype = DType::u8;
  binding.op = ReduceOp::sum;
  binding.slot_bytes = kMiB;
  binding.over_input = over_input;
  binding.neighbours = ranks;
  return {std::move(schedule), std::move(binding)};
}

bool writes_past_caches(const Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [](const BoundStep& step) { return step.streaming; });
}

Plan allreduce(std::string_view name, int ranks, std::size_t bytes, bool in_place) {
  return bind(Collective::allreduce, name, ranks, {{bytes}, {bytes}}, in_place);
}

TEST(Plan, writes_past_caches_once_the_results_of_a_node_are_too_many) {
  EXPECT_FALSE(writes_past_caches(allreduce("direct", 2, 4 * kMiB, false)));
  EXPECT_TRUE(writes_past_caches(allreduce("direct", 2, 8 * kMiB, false)));
  EXPECT_FALSE(writes_past_caches(allreduce("direct", 8, kMiB, false)));
  EXPECT_TRUE(writes_past_caches(allreduce("direct", 8, 2 * kMiB, false)));
  EXPECT_FALSE(writes_past_caches(allreduce("direct", 64, kMiB, false))) << "each has a cache";
}

TEST(Plan, counts_parts_of_any_size) {
  const Buffers uneven{{11 * kMiB - 3}, {5 * kMiB, 11 * kMiB - 3}};
  EXPECT_TRUE(writes_past_caches(bind(Collective::allgather, "direct", 2, uneven, false)));
}

// What was published was read where the results of others go: those lines are in the cache.
TEST(Plan, does_not_write_past_caches_where_it_reads_its_input) {
  EXPECT_FALSE(writes_past_caches(allreduce("direct", 2, 64 * kMiB, true)));
  const Buffers same{{64 * kMiB}, {64 * kMiB}};
  EXPECT_TRUE(writes_past_caches(bind(Collective::broadcast, "direct", 2, same, true)))
      << "whoever receives a broadcast reads nothing";
}

TEST(Plan, does_not_write_past_caches_what_it_sends_or_adds_to) {
  for (const auto* name : {"ring", "recursive_doubling", "binomial"})
    EXPECT_FALSE(writes_past_caches(allreduce(name, 4, 64 * kMiB, false))) << name;
}

TEST(Plan, is_told_how_many_receive_as_much_nearby_and_whether_its_output_is_its_input) {
  const auto hub = LocalHub::make(4, {}, 0, {0, 0, 0, 1});  // three ranks near one memory
  const auto transport = hub->join(1);
  const Options options{.algorithm = "direct"};
  Planner planner(*transport, options);
  std::vector<float> in(100), out(400);
  const auto binding = [&](Collective collective, std::span<float> output) {
    return planner
        .plan({.collective = collective,
               .input = in.data(),
               .output = output.data(),
               .count = in.size()})
        .plan.binding();
  };
  EXPECT_EQ(binding(Collective::allgather, out).neighbours, 3);
  EXPECT_EQ(binding(Collective::reduce, out).neighbours, 1) << "only the root receives";
  EXPECT_TRUE(binding(Collective::allreduce, in).over_input);
  EXPECT_FALSE(binding(Collective::allreduce, out).over_input);
}

}  // namespace
}  // namespace sinew
