// Levels, shared links, slow ranks and chance: what they do to times.
#include "model/topology.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include <sinew/error.hpp>
#include "model/crowding.hpp"
#include "model/network_file.hpp"
#include "model/noise.hpp"
#include "model/predict.hpp"
#include "support/worlds.hpp"

namespace sinew {
namespace {

using enum Collective;

constexpr double kSeedBytes = 110'278'272;  // a gradient of 27.6 million floats

// Nodes of four ranks that reach each other over one NIC of 25 GB/s; inside a node bytes are free.
Network shared_nic(std::string_view placement, std::string_view more = "") {
  return parse_network(std::string("format = \"sinew-net\"\nversion = 1\nplacement = \"") +
                           std::string(placement) + R"("
[link]
one_way = [ { gbytes_per_s = 1e12 } ]
[link.nic]
gbytes_per_s = 25
[[level]]
name = "node"
size = 4
[[level]]
name = "cluster"
link = "nic"
shared = "member"
)" + std::string(more),
                       "nic.toml");
}

double ms(Collective collective, std::string_view algorithm, int ranks, double bytes,
          const Network& network) {
  const auto answer =
      predict(find_algorithm(collective, algorithm), {collective, ranks, bytes}, network);
  return static_cast<double>(answer.time) / 1e9;
}

// Halving over blocked ranks exchanges its largest parts between nodes (far first), over ranks
// dealt round-robin inside them (near first): four times the bytes over each NIC.
TEST(Topology, the_order_of_distances_costs_four_times_where_a_nic_is_shared) {
  const auto far = shared_nic("blocked"), near = shared_nic("round_robin");
  struct Row {
    int ranks;
    double far, near, ring;
  };
  for (const auto& row : {Row{8, 17.6, 4.4, 7.7}, {16, 26.5, 6.6, 8.3}, {32, 30.9, 7.7, 8.5}}) {
    const double whole = kSeedBytes / 25e9 * 1e3;  // ms that the gradient takes through a NIC
    const double nodes = row.ranks / 4.0, share = (nodes - 1) / nodes;
    const double far_ms = ms(allreduce, "halving_doubling", row.ranks, kSeedBytes, far);
    const double near_ms = ms(allreduce, "halving_doubling", row.ranks, kSeedBytes, near);
    EXPECT_NEAR(far_ms, 8 * share * whole, 1e-6) << row.ranks;
    EXPECT_NEAR(near_ms, 2 * share * whole, 1e-6) << row.ranks;
    EXPECT_NEAR(far_ms, row.far, 0.06);
    EXPECT_NEAR(near_ms, row.near, 0.06);
    EXPECT_NEAR(ms(allreduce, "ring", row.ranks, kSeedBytes, far), row.ring, 0.06);
  }
}

TEST(Topology, a_nic_for_each_rank_costs_nothing_extra) {
  const auto network = shared_nic("blocked", "links = 4\n");
  EXPECT_NEAR(ms(allreduce, "halving_doubling", 8, kSeedBytes, network), kSeedBytes / 25e9 * 1e3,
              1e-6);
}

// Both engines compute the same where nobody has to share: a link that all pass but that is wide
// enough goes through the flows, and changes no picosecond.
TEST(Topology, links_that_are_wide_enough_change_nothing) {
  auto plain = parse_network_line("alpha=5us,bw=25GB/s,gamma=10GB/s,copy=13GB/s");
  plain.board = BoardCosts{
      .wait_ps = 1e5, .slot_bytes = 3e5, .publish = Curve(0, 20), .gather = Curve(0, 30)};
  auto wide = plain;
  wide.topology.links.push_back({.name = "wide", .one_way = plain.one_way});
  wide.topology.links.back().capacity_gbytes = 1e9;
  wide.topology.levels.push_back({.name = "all", .link = 0, .sharing = Sharing::level});
  std::uint64_t flows = 0;
  for (const auto& algorithm : algorithms())
    for (const int size : {2, 3, 7, 8, 13, 16})
      for (const auto& setting : settings(algorithm, size))
        for (const double eager : {-1.0, 2e6}) {
          const Place place{.size = size,
                            .root = setting.root,
                            .segments = setting.segments,
                            .node_of = setting.node_of};
          const auto workload = workload_of(algorithm, place, 1'000'003);
          plain.eager_bytes = wide.eager_bytes = eager;
          const auto one = simulate(workload, plain, {.collapse = false});
          const auto other = simulate(workload, wide);
          EXPECT_EQ(one.flows, 0U);
          EXPECT_EQ(one.end, other.end) << to_string(setting) << " eager " << eager;
          EXPECT_NEAR(one.idle, other.idle, 1e-9) << to_string(setting);
          flows += other.flows;
        }
  EXPECT_GT(flows, 10'000U);
}

TEST(Topology, closed_forms_hold_through_the_flow_engine) {
  auto network = parse_network_line("alpha=5us,bw=25GB/s,gamma=10GB/s");
  network.topology.links.push_back(
      {.name = "wide", .one_way = network.one_way, .capacity_gbytes = 1e9});
  network.topology.levels.push_back({.name = "all", .link = 0, .sharing = Sharing::level});
  for (int size = 2; size <= 65; ++size) {
    const double bytes = size * 64'000.0, others = (size - 1.0) / size;
    const double ring = 2.0 * (size - 1) * 5e-3 + (2 * others / 25e9 + others / 10e9) * bytes * 1e3;
    EXPECT_NEAR(ms(allreduce, "ring", size, bytes, network) / ring, 1, 1e-12) << size;
    const double rounds = std::bit_width(static_cast<unsigned>(size - 1));
    const double tree = rounds * (5e-3 + bytes / 25e9 * 1e3);
    EXPECT_NEAR(ms(broadcast, "binomial", size, bytes, network) / tree, 1, 1e-12) << size;
  }
}

TEST(Topology, a_backbone_is_shared_by_all) {
  auto network = parse_network_line("alpha=0us,bw=1GB/s");
  network.topology.links.push_back({.name = "bus", .one_way = network.one_way});
  network.topology.levels.push_back({.name = "all", .link = 0, .sharing = Sharing::level});
  // Eight ranks send an eighth of 8 MB each in every of 14 steps: eight messages share 1 GB/s.
  EXPECT_NEAR(ms(allreduce, "ring", 8, 8e6, network), 14 * 8 * 1, 1e-6);
}

TEST(Topology, neither_order_nor_seed_of_visiting_changes_a_picosecond) {
  auto network = shared_nic("blocked", "[noise]\ndeviation_percent = 20\n");
  network.board = BoardCosts{.wait_ps = 1e5, .publish = Curve(0, 20), .gather = Curve(0, 30)};
  for (const std::string_view name : {"halving_doubling", "ring", "two_level", "binomial"}) {
    const auto& algorithm = find_algorithm(allreduce, name);
    const auto node_of = network.topology.node_of(24);
    const auto workload = workload_of(algorithm, {.size = 24, .node_of = node_of}, 1e6);
    const auto one = simulate(workload, network);
    EXPECT_GT(one.flows, 0U);
    for (const std::uint64_t seed : {1, 2, 3, 4, 5})
      EXPECT_EQ(simulate(workload, network, {.shuffle_seed = seed}).end, one.end) << name;
  }
}

TEST(Topology, the_closed_form_of_two_levels_holds) {
  // Messages of 2 us and 50 GB/s in a node of g ranks, 5 us and 25 GB/s between N nodes.
  const auto text = [](int g, int links) {
    return fmt::format(R"(format = "sinew-net"
version = 1
[link.near]
alpha_us = 2
gbytes_per_s = 50
[link.nic]
alpha_us = 5
gbytes_per_s = 25
[compute]
reduce = [ {{ gbytes_per_s = 10 }} ]
[[level]]
name = "node"
size = {}
link = "near"
[[level]]
name = "cluster"
link = "nic"
shared = "member"
links = {}
)",
                       g, links);
  };
  for (const int g : {2, 4, 8})
    for (const int nodes : {2, 3, 4})
      for (const bool own : {true, false}) {
        const auto network = parse_network(text(g, own ? g : 1), "two.toml");
        const double bytes = 24e6, part = bytes / g;
        const double near = 2.0 * (g - 1) * 2e-6 + (g - 1.0) / g * bytes * (2 / 50e9 + 1 / 10e9);
        const double far = 2.0 * (nodes - 1) * 5e-6 +
                           (nodes - 1.0) / nodes * part * (2 * (own ? 1 : g) / 25e9 + 1 / 10e9);
        // Rings in both levels: what the algorithm `grid` does by other means costs no more alphas.
        Question question{allreduce, g * nodes, bytes};
        const auto& grid = find_algorithm(allreduce, "grid");
        if (!fits(grid, question, network)) continue;
        const auto time = static_cast<double>(predict(grid, question, network).time) / 1e12;
        EXPECT_NEAR(time / (near + far), 1, 0.02) << g << ' ' << nodes << ' ' << own;
      }
}

TEST(Topology, slow_and_late_ranks_hold_everybody_up) {
  auto network = parse_network_line("alpha=1us,bw=1GB/s,gamma=1GB/s");
  const double usual = ms(allreduce, "ring", 4, 4e6, network);
  network.topology.ranks.push_back({.ranks = RankRanges::parse("2"), .delay_ps = 5e9});
  EXPECT_NEAR(ms(allreduce, "ring", 4, 4e6, network), usual + 5, 1.5);
  network.topology.ranks = {{.ranks = RankRanges::parse("0..1"), .speed = 0.5}};
  EXPECT_GT(ms(allreduce, "ring", 4, 4e6, network), usual);
  network.topology.ranks = {{.ranks = RankRanges::parse("3"), .gbytes_per_s = 0.25}};
  EXPECT_NEAR(ms(broadcast, "linear", 4, 1e6, network), 2 * 1.001 + 4.001, 1e-6);
}

TEST(Topology, paths_go_their_own_way_and_share_it) {
  auto network = parse_network_line("alpha=1us,bw=1GB/s");
  network.topology.links = {{.name = "slow", .one_way = Curve(2e6, 1e4), .shared = true},
                            {.name = "wan", .one_way = Curve(3e6, 2e3)}};
  network.topology.paths = {
      {.from = RankRanges::parse("0"), .to = RankRanges::parse("1"), .links = {0, 1}}};
  // Alphas add up, the slowest rate holds: 2 + 3 us, 0.1 GB/s.
  EXPECT_NEAR(ms(broadcast, "linear", 2, 1e6, network), 10 + 0.005, 1e-9);
  EXPECT_NEAR(ms(broadcast, "linear", 3, 1e6, network), 10 + 0.005 + 1.001, 1e-9);
}

TEST(Topology, less_bandwidth_is_never_faster) {
  for (const std::string_view name : {"ring", "halving_doubling", "binomial", "two_level", "grid"})
    for (const std::string_view placement : {"blocked", "round_robin"}) {
      double before = 0;
      for (const double rate : {100.0, 50.0, 25.0, 12.5, 6.25}) {
        auto network = shared_nic(placement);
        network.topology.links[0].one_way = Curve(0, 1e3 / rate);
        if (!fits(find_algorithm(allreduce, name), {allreduce, 16, 1e7}, network)) continue;
        const double now = ms(allreduce, name, 16, 1e7, network);
        EXPECT_GE(now, before * (1 - 1e-9)) << name << ' ' << rate;
        before = now;
      }
    }
}

TEST(Noise, factors_have_mean_1_and_the_deviation_that_was_asked_for) {
  const auto factors = [](Noise::Kind kind, double deviation) {
    double sum = 0, squares = 0;
    constexpr int kCount = 200'000;
    for (int i = 0; i < kCount; ++i) {
      auto network = Noise{.kind = kind, .deviation = deviation};
      const double factor = noise_factor(network, 42, static_cast<std::uint64_t>(i));
      EXPECT_GE(factor, 0);
      sum += factor;
      squares += factor * factor;
    }
    const double mean = sum / kCount;
    return std::pair(mean, std::sqrt(squares / kCount - mean * mean));
  };
  for (const auto kind : {Noise::Kind::normal, Noise::Kind::lognormal, Noise::Kind::exponential}) {
    const auto [mean, deviation] = factors(kind, 0.25);
    EXPECT_NEAR(mean, 1, 0.005);
    EXPECT_NEAR(deviation, 0.25, 0.01);
  }
  EXPECT_NEAR(factors(Noise::Kind::pareto, 0.25).first, 1, 0.01);
}

// Whoever waits for the slowest of many is not helped by some being faster.
TEST(Noise, of_mean_0_never_makes_the_mean_faster) {
  for (const std::string_view name : {"ring", "halving_doubling", "binomial"})
    for (const auto kind : {Noise::Kind::normal, Noise::Kind::lognormal, Noise::Kind::exponential,
                            Noise::Kind::pareto}) {
      auto network = parse_network_line("alpha=5us,bw=10GB/s,gamma=10GB/s");
      Question question{allreduce, 16, 1e6};
      question.samples = 50;
      const auto& algorithm = find_algorithm(allreduce, name);
      const auto quiet = predict(algorithm, question, network);
      network.noise = {.kind = kind, .deviation = 0.2};
      const auto noisy = predict(algorithm, question, network);
      EXPECT_GE(noisy.time, quiet.time) << name;
      EXPECT_LT(noisy.low, noisy.high) << name;
      const auto again = predict(algorithm, question, network);
      EXPECT_EQ(noisy.time, again.time);
      network.noise.seed = 1000;
      EXPECT_NE(predict(algorithm, question, network).time, noisy.time);
    }
}

TEST(Noise, stragglers_are_drawn_from_the_seed) {
  auto network = parse_network_line("alpha=5us,bw=10GB/s");
  network.stragglers = {.share = 0.5, .delay_ps = 1e10};
  Question question{allreduce, 64, 1e3};
  question.samples = 1;
  const auto& algorithm = find_algorithm(allreduce, "recursive_doubling");
  const auto late = predict(algorithm, question, network);
  EXPECT_GT(late.time, 1e10);
  EXPECT_GT(late.wait, 0.9);  // almost all of it is waiting for them
  network.stragglers.share = 0;
  EXPECT_LT(predict(algorithm, question, network).time, 1e9);
}

Network on_two_cores(Cores::Progress progress) {
  auto network = parse_network_line("alpha=0.4us,bw=10GB/s");
  network.cores = {.count = 2, .progress = progress};
  return network;
}

// The laws of crowded hosts, against what was measured of two libraries on two cores: 8 bytes,
// 3, 4, 6 and 8 ranks (us where ranks yield, ms where they spin).
TEST(Crowding, laws_are_right_within_their_error_bars) {
  const auto time_us = [](Cores::Progress progress, std::string_view algorithm, int ranks) {
    return predict(find_algorithm(allreduce, algorithm), {allreduce, ranks, 8},
                   on_two_cores(progress));
  };
  const std::array<int, 4> ranks{3, 4, 6, 8};
  const std::array<double, 4> yielded{6.9, 8.5, 35, 39}, spun{24e3, 36e3, 51e3, 76e3};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto yield = time_us(Cores::Progress::yield, "recursive_doubling", ranks[i]);
    EXPECT_LE(yield.low / 1e6, yielded[i]) << ranks[i];
    EXPECT_GE(yield.high / 1e6, yielded[i]) << ranks[i];
    const auto spin = time_us(Cores::Progress::spin, "binomial", ranks[i]);
    EXPECT_LE(spin.low / 1e6, spun[i]) << ranks[i];
    EXPECT_GE(spin.high / 1e6, spun[i]) << ranks[i];
    EXPECT_NEAR(static_cast<double>(spin.time) / 1e6 / spun[i], 1, 0.6) << ranks[i];
    ASSERT_EQ(spin.warnings.size(), 1U);
    EXPECT_NE(spin.warnings[0].find("only the order of magnitude"), std::string::npos);
  }
  EXPECT_TRUE(time_us(Cores::Progress::spin, "binomial", 2).warnings.empty());
}

TEST(Crowding, what_was_measured_crowded_is_taken_as_it_is) {
  auto network = on_two_cores(Cores::Progress::yield);
  network.provenance.ranks = 8;
  const auto& ring = find_algorithm(allreduce, "ring");
  const auto eight = predict(ring, {allreduce, 8, 8}, network);
  EXPECT_TRUE(eight.warnings.empty());
  EXPECT_NEAR(static_cast<double>(eight.time), 14 * 0.4e6, 14 * 200);
  EXPECT_EQ(predict(ring, {allreduce, 6, 8}, network).warnings.size(), 1U);
}

TEST(Crowding, ranks_are_counted_by_host) {
  auto network = on_two_cores(Cores::Progress::yield);
  network.topology.levels = {{.name = "node", .size = 2}, {.name = "cluster"}};
  EXPECT_TRUE(
      predict(find_algorithm(allreduce, "ring"), {allreduce, 64, 8}, network).warnings.empty());
}

}  // namespace
}  // namespace sinew
