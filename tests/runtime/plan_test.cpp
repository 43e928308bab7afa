// What a plan decides about how bytes are written.
#include "runtime/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <sinew/algorithms.hpp>

namespace sinew {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Buffers {
  std::vector<std::size_t> input, output;  // bytes of each part
};

// One rank's plan of `direct` on bytes.
Plan bind_direct(Collective collective, int ranks, const Buffers& buffers, bool over_input) {
  const auto& algorithm = find_algorithm(collective, "direct");
  auto schedule = algorithm.make({.rank = 1, .size = ranks});
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

Plan allreduce(int ranks, std::size_t bytes, bool in_place) {
  return bind_direct(Collective::allreduce, ranks, {{bytes}, {bytes}}, in_place);
}

TEST(Plan, writes_past_caches_what_all_neighbours_receive_is_too_much_for) {
  EXPECT_FALSE(writes_past_caches(allreduce(2, 4 * kMiB, false)));
  EXPECT_TRUE(writes_past_caches(allreduce(2, 8 * kMiB, false)));
  EXPECT_TRUE(writes_past_caches(allreduce(8, 4 * kMiB, false)));
}

TEST(Plan, counts_parts_of_any_size) {
  const Buffers uneven{{11 * kMiB - 3}, {5 * kMiB, 11 * kMiB - 3}};
  EXPECT_TRUE(writes_past_caches(bind_direct(Collective::allgather, 2, uneven, false)));
}

// What was published was read where the result of the others goes: those lines are in the cache.
TEST(Plan, does_not_write_past_caches_into_what_it_has_just_read) {
  EXPECT_FALSE(writes_past_caches(allreduce(2, 64 * kMiB, true)));
  const Buffers root_and_others{{64 * kMiB}, {64 * kMiB}};
  EXPECT_TRUE(writes_past_caches(bind_direct(Collective::broadcast, 2, root_and_others, true)))
      << "whoever receives a broadcast has read nothing";
}

}  // namespace
}  // namespace sinew
