// The longest chain of messages, where it can be counted by hand.
#include "model/depth.hpp"

#include <gtest/gtest.h>

#include <sinew/algorithms.hpp>

namespace sinew {
namespace {

int depth_of(Collective collective, std::string_view algorithm, int size,
             std::uint32_t segments = 1) {
  return message_depth(make_world(find_algorithm(collective, algorithm), size, 0, segments).ranks);
}

TEST(Depth, of_algorithms_is_as_counted_by_hand) {
  for (const int size : {2, 4, 8, 16}) {
    int log = 0;
    while (1 << log < size) ++log;
    EXPECT_EQ(depth_of(Collective::allreduce, "recursive_doubling", size), log);
    EXPECT_EQ(depth_of(Collective::allreduce, "halving_doubling", size), 2 * log);
    EXPECT_EQ(depth_of(Collective::allreduce, "binomial", size), 2 * log);
    EXPECT_EQ(depth_of(Collective::allreduce, "ring", size), 2 * (size - 1));
    EXPECT_EQ(depth_of(Collective::allreduce, "chain", size), 2 * (size - 1));
    EXPECT_EQ(depth_of(Collective::broadcast, "linear", size), 1);
    EXPECT_EQ(depth_of(Collective::allgather, "ring", size), size - 1);
  }
}

TEST(Depth, of_one_rank_is_nothing) {
  EXPECT_EQ(depth_of(Collective::allreduce, "ring", 1), 0);
  EXPECT_EQ(message_depth({}), 0);
}

// Every algorithm ends, in pieces as well: a chain is never longer than all its messages.
TEST(Depth, is_found_for_every_algorithm) {
  for (const auto& algorithm : algorithms())
    for (const int size : {2, 3, 5, 8})
      for (const std::uint32_t segments : {1U, 4U}) {
        if (!algorithm.fits({0, size, 0, segments, {}}, {})) continue;
        const auto world = make_world(algorithm, size, 0, segments);
        std::size_t receives = 0;
        for (const auto& schedule : world.ranks)
          for (const auto& step : schedule.steps)
            receives += step.op == Op::recv || step.op == Op::recv_reduce ? 1 : 0;
        const auto depth = message_depth(world.ranks);
        EXPECT_GE(depth, 1) << algorithm.name;
        EXPECT_LE(static_cast<std::size_t>(depth), receives) << algorithm.name;
      }
}

}  // namespace
}  // namespace sinew
