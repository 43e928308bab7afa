// What calls are predicted to take: nodes and their links, crowded hosts, calls that overlap, and
// that the answer follows from the model.
#include "model/select.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "model/defaults.hpp"
#include "model/predict.hpp"

namespace sinew {
namespace {

const std::vector<int> kTwoOfFour{0, 0, 0, 0, 1, 1, 1, 1};

Surroundings memory(int cores = 8) {
  Surroundings around{.network = default_network(Medium::memory), .cores = cores};
  around.network.board->slot_bytes = 1 << 19;
  return around;
}
// 1 Gbit/s and 1 ms between two nodes.
Surroundings slow_link() {
  auto around = memory();
  around.crossing_ps = 1e9;
  around.crossing_byte_ps = 8000;
  return around;
}

double took(std::string_view algorithm, double bytes, const Surroundings& around,
            std::span<const int> node_of, Collective collective = Collective::allreduce,
            int size = 8) {
  const auto& row = find_algorithm(collective, algorithm);
  const auto segments = segments_for(row, static_cast<std::uint64_t>(bytes), 0);
  return call_ps(row, {.size = size, .segments = segments, .node_of = node_of}, bytes, around);
}

std::string_view best(Collective collective, int size, double bytes, const Surroundings& around) {
  std::string_view name;
  double least = 1e30;
  for (const auto& row : algorithms()) {
    const Place place{.size = size, .node_of = {}};
    if (row.collective != collective ||
        !row.fits(place, {.board = around.network.board.has_value()}))
      continue;
    const double ps = took(row.name, bytes, around, {}, collective, size);
    if (ps < least) {
      least = ps;
      name = row.name;
    }
  }
  return name;
}

TEST(Predicted, one_node_or_many_cost_the_same_when_links_are_free) {
  for (const auto* const algorithm : {"ring", "binomial", "flat"})
    EXPECT_EQ(took(algorithm, 1 << 20, memory(), kTwoOfFour),
              took(algorithm, 1 << 20, memory(), {}));
}

TEST(Predicted, a_ring_crosses_in_every_round_and_two_levels_once) {
  const double bytes = 80'000;  // a part of 10,000 takes 80 us
  EXPECT_NEAR(took("ring", bytes, slow_link(), kTwoOfFour) - took("ring", bytes, memory(), {}),
              14 * (1e9 + 80e6), 1e3);
  EXPECT_NEAR(took("two_level", bytes, slow_link(), kTwoOfFour) -
                  took("two_level", bytes, memory(), kTwoOfFour),
              1e9 + 640e6, 1e3);
}

TEST(Predicted, ranks_of_a_node_share_its_link) {
  // Doubling: in one round of three, four ranks of each node meet four of the other.
  EXPECT_NEAR(took("recursive_doubling", 80'000, slow_link(), kTwoOfFour) -
                  took("recursive_doubling", 80'000, memory(), {}),
              1e9 + 4 * 640e6, 1e3);
}

TEST(Predicted, levels_need_two_nodes_of_two_ranks) {
  EXPECT_TRUE(has_levels(kTwoOfFour));
  EXPECT_TRUE(has_levels(std::vector{0, 1, 2, 1, 2}));
  EXPECT_FALSE(has_levels(std::vector{0, 1, 1, 1}));
  EXPECT_FALSE(has_levels(std::vector{0, 1, 2, 3}));
  EXPECT_FALSE(has_levels(std::vector{4, 4, 4}));
  EXPECT_FALSE(has_levels({}));
}

TEST(Predicted, a_core_for_each_rank_is_what_predict_says) {
  Surroundings sockets{.network = default_network(Medium::sockets), .cores = 4};
  for (const auto* const algorithm : {"ring", "halving_doubling", "binomial", "double_tree"}) {
    const auto answer = predict(find_algorithm(Collective::allreduce, algorithm),
                                {.collective = Collective::allreduce, .ranks = 4, .bytes = 1 << 20},
                                sockets.network);
    EXPECT_EQ(took(algorithm, 1 << 20, sockets, {}, Collective::allreduce, 4),
              static_cast<double>(answer.time))
        << algorithm;
  }
}

TEST(Predicted, turns_count_when_ranks_outnumber_cores) {
  // Eight ranks on two cores: 3.4 us until a rank has its turn again.
  const double hop = 4 * memory().network.cores.switch_ps;
  const double chain = took("chain", 8, memory(2), {}), flat = took("flat", 8, memory(2), {});
  EXPECT_GT(chain, 14 * hop);  // messages one after another
  EXPECT_LT(chain, 15 * hop);
  EXPECT_GT(flat, 2 * hop);
  EXPECT_LT(flat, 3 * hop);
}

// One after another, the ranks of a tree wait for its root; slice by slice they need not. A line of
// all ranks to one is still bound by that one.
TEST(Predicted, slices_let_a_tree_work_while_its_root_does) {
  Surroundings around{.network = default_network(Medium::sockets), .cores = 2};
  const auto whole = took("binomial", 16 << 20, around, {});
  around.network.slice_bytes = 1 << 20;
  EXPECT_LT(took("binomial", 16 << 20, around, {}), 0.8 * whole);
  for (const double bytes : {4 << 20, 16 << 20, 64 << 20})
    EXPECT_EQ(best(Collective::allreduce, 8, bytes, around), "binomial") << bytes;
  around.cores = 6;
  const auto one_way = static_cast<double>(around.network.one_way.at(64 << 20).beta);
  EXPECT_GT(took("linear", 64 << 20, around, {}), 14 * one_way / 2);
}

TEST(Predicted, a_model_of_as_many_ranks_has_their_turns_in_it) {
  auto around = memory(2);
  around.network.provenance.ranks = 8;
  EXPECT_EQ(took("flat", 8, around, {}), took("flat", 8, memory(8), {}));
}

TEST(Predicted, short_broadcasts_go_by_messages_and_long_ones_by_slots) {
  for (const int size : {2, 8}) {
    EXPECT_EQ(best(Collective::broadcast, size, 4096, memory(2)), "binomial") << size;
    EXPECT_EQ(best(Collective::broadcast, size, 1 << 20, memory(2)), "direct") << size;
  }
}

TEST(Predicted, other_costs_make_another_choice) {
  Surroundings around{.network = default_network(Medium::sockets), .cores = 8};
  EXPECT_EQ(best(Collective::allreduce, 8, 8, around), "recursive_doubling");
  around.network.one_way = around.network.exchange = Curve(1, 1000);  // only bytes cost
  EXPECT_NE(best(Collective::allreduce, 8, 1 << 20, around), "recursive_doubling");
  auto board = memory();
  EXPECT_EQ(best(Collective::allreduce, 8, 8, board), "flat");
  board.network.board->wait_ps = 1e12;  // nobody notices what others publish
  EXPECT_EQ(best(Collective::allreduce, 8, 8, board), "recursive_doubling");
}

TEST(Predicted, many_ranks_are_bounded_work) {
  const Surroundings around{.network = default_network(Medium::sockets), .cores = 4};
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& row : algorithms()) {
    const Place place{.size = 2048, .node_of = {}};
    if (row.collective != Collective::allreduce || !row.fits(place, {})) continue;
    EXPECT_GT(took(row.name, 16 << 20, around, {}, Collective::allreduce, 2048), 0) << row.name;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace sinew
