// Estimates: what nodes and their links change about them.
#include "model/select.hpp"

#include <gtest/gtest.h>

#include "support/worlds.hpp"

namespace sinew {
namespace {

const std::vector<int> kTwoOfFour{0, 0, 0, 0, 1, 1, 1, 1};

double estimate(std::string_view algorithm, std::uint64_t bytes, const CostTable& cost,
                std::span<const int> node_of) {
  const Place place{.size = 8, .node_of = node_of};
  return estimate_ns(find_algorithm(Collective::allreduce, algorithm), place, bytes, cost);
}

// 1 Gbit/s and 1 ms between two nodes.
CostTable slow_link() {
  auto cost = cost_table(Medium::memory, std::uint64_t{1} << 19, 8, 8);
  cost.node_message_ns = 1e6;
  cost.node_byte_ns = 8;
  return cost;
}

TEST(Estimates, one_node_or_many_cost_the_same_when_links_are_free) {
  const auto cost = cost_table(Medium::memory, std::uint64_t{1} << 19, 8, 8);
  for (const auto algorithm : {"ring", "binomial", "flat"})
    EXPECT_EQ(estimate(algorithm, 1 << 20, cost, kTwoOfFour),
              estimate(algorithm, 1 << 20, cost, {}));
}

TEST(Estimates, a_ring_crosses_in_every_round_and_two_levels_once) {
  const auto cost = slow_link();
  const auto base = cost_table(Medium::memory, std::uint64_t{1} << 19, 8, 8);
  const std::uint64_t bytes = 80'000;  // a part of 10,000 takes 80 us
  EXPECT_NEAR(estimate("ring", bytes, cost, kTwoOfFour) - estimate("ring", bytes, base, {}),
              14 * (1e6 + 80e3), 1);
  EXPECT_NEAR(estimate("two_level", bytes, cost, kTwoOfFour) -
                  estimate("two_level", bytes, base, kTwoOfFour),
              1e6 + 640e3, 1);
}

TEST(Estimates, ranks_of_a_node_share_its_link) {
  const auto cost = slow_link();
  const auto base = cost_table(Medium::memory, std::uint64_t{1} << 19, 8, 8);
  // Doubling: in one round of three, four ranks of each node meet four of the other.
  EXPECT_NEAR(estimate("recursive_doubling", 80'000, cost, kTwoOfFour) -
                  estimate("recursive_doubling", 80'000, base, {}),
              1e6 + 4 * 640e3, 1);
}

TEST(Estimates, levels_need_two_nodes_of_two_ranks) {
  EXPECT_TRUE(has_levels(kTwoOfFour));
  EXPECT_TRUE(has_levels(std::vector{0, 1, 2, 1, 2}));
  EXPECT_FALSE(has_levels(std::vector{0, 1, 1, 1}));
  EXPECT_FALSE(has_levels(std::vector{0, 1, 2, 3}));
  EXPECT_FALSE(has_levels(std::vector{4, 4, 4}));
  EXPECT_FALSE(has_levels({}));
}

}  // namespace
}  // namespace sinew
