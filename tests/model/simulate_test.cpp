// Simulated times against closed forms, bounds, and what must not change them.
#include "model/simulate.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include <sinew/error.hpp>
#include "schedule/builder.hpp"
#include "support/worlds.hpp"

namespace sinew {
namespace {

// 5 us, 25 GB/s, 10 GB/s of reducing: all whole picoseconds.
constexpr double kAlpha = 5e6, kBeta = 40, kGamma = 100;

Network plain(double eager_bytes = -1) {
  Network network;
  network.one_way = Curve(kAlpha, kBeta);
  network.reduce = Curve(0, kGamma);
  network.eager_bytes = eager_bytes;
  return network;
}

// The same, where every message passes a link that others use as well, which is wide enough.
Network crossbar(double eager_bytes = -1) {
  auto network = plain(eager_bytes);
  network.topology.links = {{.name = "wide", .one_way = network.one_way, .capacity_gbytes = 1e9}};
  network.topology.levels = {{.name = "all", .link = 0, .sharing = Sharing::level}};
  return network;
}

Simulated run(Collective collective, std::string_view name, int size, double bytes,
              const Network& network, std::uint32_t segments = 1, SimulateOptions options = {}) {
  const auto& algorithm = find_algorithm(collective, name);
  return simulate(
      workload_of(algorithm, {.size = size, .segments = segments, .node_of = {}}, bytes), network,
      options);
}

// What a closed form is made of: how many alphas, and shares of the message moved and reduced.
struct Form {
  double alphas, moved, reduced;
};

struct Closed {
  Collective collective;
  std::string_view algorithm;
  Form (*form)(int size);
  bool powers_of_two = false;
};

double floor_log(int p) {
  return static_cast<double>(std::bit_width(static_cast<unsigned>(p)) - 1);
}
double ceil_log(int p) { return static_cast<double>(std::bit_width(static_cast<unsigned>(p - 1))); }
bool is_power(int p) { return std::has_single_bit(static_cast<unsigned>(p)); }
double all_but_one(int p) { return (p - 1.0) / p; }

Form doubling(int p) {
  const double rounds = floor_log(p);
  return is_power(p) ? Form{rounds, rounds, rounds} : Form{rounds + 2, rounds + 2, rounds + 1};
}
Form rabenseifner(int p) {
  const double rounds = floor_log(p), rest = 1 - std::exp2(-rounds);
  return is_power(p) ? Form{2 * rounds, 2 * rest, rest}
                     : Form{2 * rounds + 2, 2 * rest + 2, rest + 1};
}
Form bruck_alltoall(int p) {
  double parts = 0;
  for (unsigned j = 0; j < static_cast<unsigned>(p); ++j) parts += std::popcount(j);
  return {ceil_log(p), parts / p, 0};
}

using enum Collective;
constexpr std::array kClosed = std::to_array<Closed>({
    {allreduce, "ring",
     [](int p) -> Form {
       return {2.0 * (p - 1), 2 * all_but_one(p), all_but_one(p)};
     }},
    {allreduce, "recursive_doubling", doubling},
    {allreduce, "halving_doubling", rabenseifner},
    {allreduce, "binomial",
     [](int p) -> Form {
       return {2 * ceil_log(p), 2 * ceil_log(p), ceil_log(p)};
     }},
    {broadcast, "binomial",
     [](int p) -> Form {
       return {ceil_log(p), ceil_log(p), 0};
     }},
    {broadcast, "linear",
     [](int p) -> Form {
       return {p - 1.0, p - 1.0, 0};
     }},
    {reduce, "binomial",
     [](int p) -> Form {
       return {ceil_log(p), ceil_log(p), ceil_log(p)};
     }},
    {scatter, "binomial",
     [](int p) -> Form {
       return {ceil_log(p), all_but_one(p), 0};
     },
     true},
    {gather, "binomial",
     [](int p) -> Form {
       return {ceil_log(p), all_but_one(p), 0};
     },
     true},
    {allgather, "ring",
     [](int p) -> Form {
       return {p - 1.0, all_but_one(p), 0};
     }},
    {allgather, "recursive_doubling",
     [](int p) -> Form {
       return {ceil_log(p), all_but_one(p), 0};
     },
     true},
    {allgather, "bruck",
     [](int p) -> Form {
       return {ceil_log(p), all_but_one(p), 0};
     }},
    {allgather, "linear",
     [](int p) -> Form {
       return {p - 1.0, all_but_one(p), 0};
     }},
    {reduce_scatter, "ring",
     [](int p) -> Form {
       return {p - 1.0, all_but_one(p), all_but_one(p)};
     }},
    {reduce_scatter, "pairwise",
     [](int p) -> Form { return {p - 1.0, all_but_one(p), all_but_one(p)}; }},
    {reduce_scatter, "recursive_halving",
     [](int p) -> Form { return {ceil_log(p), all_but_one(p), all_but_one(p)}; }, true},
    {alltoall, "pairwise", [](int p) -> Form { return {p - 1.0, all_but_one(p), 0}; }},
    {alltoall, "linear", [](int p) -> Form { return {p - 1.0, all_but_one(p), 0}; }},
    {alltoall, "bruck", bruck_alltoall},
});

TEST(Simulate, closed_forms_hold_from_2_to_65_ranks) {
  for (const auto& row : kClosed)
    for (int size = 2; size <= 65; ++size) {
      if (row.powers_of_two && !is_power(size)) continue;
      const double bytes = size * 64'000.0;  // whole bytes for p parts and for any power of two
      const auto form = row.form(size);
      const double expected =
          form.alphas * kAlpha + (form.moved * kBeta + form.reduced * kGamma) * bytes;
      for (const bool collapse : {true, false}) {
        const auto end =
            run(row.collective, row.algorithm, size, bytes, plain(), 1, {.collapse = collapse}).end;
        EXPECT_NEAR(static_cast<double>(end.at) / expected, 1, 1e-12)
            << name(row.collective) << ' ' << row.algorithm << ' ' << size;
        EXPECT_NEAR(static_cast<double>(end.alpha), form.alphas * kAlpha, 1) << row.algorithm;
        EXPECT_NEAR(static_cast<double>(end.gamma), form.reduced * kGamma * bytes, 1)
            << row.algorithm << ' ' << size;
        EXPECT_EQ(end.at, end.alpha + end.beta + end.gamma) << row.algorithm;
      }
      if (size > 17 && size % 16 > 1) continue;  // the others would only take longer
      const auto direct = run(row.collective, row.algorithm, size, bytes, plain());
      const auto shared = run(row.collective, row.algorithm, size, bytes, crossbar());
      EXPECT_EQ(shared.flows, shared.messages) << row.algorithm << ' ' << size;
      EXPECT_EQ(shared.end, direct.end) << row.algorithm << ' ' << size;
    }
}

TEST(Simulate, a_chain_of_segments_costs_its_closed_form) {
  for (int size = 2; size <= 65; ++size)
    for (const std::uint32_t segments : {1U, 5U, 40U}) {
      const double bytes = 400'000;
      const auto end = run(broadcast, "chain", size, bytes, plain(), segments).end;
      EXPECT_NEAR(static_cast<double>(end.at),
                  (size - 2 + segments) * (kAlpha + kBeta * bytes / segments), 0.5);
    }
}

// The second child's message comes in while the first one's is being combined.
TEST(Simulate, eager_messages_do_not_wait_for_a_receiver_that_is_still_reducing) {
  const double bytes = 1e6;
  const auto one = kAlpha + kBeta * bytes, sum = kGamma * bytes;
  EXPECT_EQ(run(reduce, "binomial", 3, bytes, plain()).end.at, std::llround(2 * (one + sum)));
  EXPECT_EQ(run(reduce, "binomial", 3, bytes, plain(bytes)).end.at,
            std::llround(std::max(2 * one, one + sum) + sum));
  EXPECT_EQ(run(reduce, "binomial", 3, bytes, plain(bytes - 1)).end.at,
            std::llround(2 * (one + sum)));
  for (const int size :
       {2, 4, 8, 16, 32, 64})  // where all children are equally busy: no difference
    EXPECT_EQ(run(allreduce, "halving_doubling", size, bytes, plain(bytes)).end.at,
              run(allreduce, "halving_doubling", size, bytes, plain()).end.at);
}

TEST(Simulate, exchanges_may_cost_more_than_messages_one_way) {
  auto network = plain();
  network.exchange = Curve(2 * kAlpha, 3 * kBeta);
  const auto ring = run(allreduce, "ring", 4, 4000, network);
  EXPECT_TRUE(ring.used_exchange);
  EXPECT_EQ(ring.end.at, std::llround(6 * (2 * kAlpha + 3 * kBeta * 1000) + 3 * 1000 * kGamma));
  const auto tree = run(broadcast, "binomial", 4, 4000, network);
  EXPECT_FALSE(tree.used_exchange);
  EXPECT_EQ(tree.end.at, std::llround(2 * (kAlpha + kBeta * 4000)));
}

TEST(Simulate, curves_have_segments) {
  Network network;
  network.one_way = Curve({{1000, 1e6, 10}, {0, 5e6, 1}});
  EXPECT_EQ(run(broadcast, "linear", 2, 1000, network).end.at, 1'010'000);
  EXPECT_EQ(run(broadcast, "linear", 2, 1001, network).end.at, 5'001'001);
}

// Symmetry and the order in which ranks are looked at are ways to compute, not part of the answer.
TEST(Simulate, neither_symmetry_nor_order_changes_anything) {
  for (const auto& algorithm : algorithms())
    for (const int size : {2, 3, 7, 8, 13, 16})
      for (const auto& setting : settings(algorithm, size)) {
        const Place place{.size = size,
                          .root = setting.root,
                          .segments = setting.segments,
                          .node_of = setting.node_of};
        const auto workload = workload_of(algorithm, place, 1'000'003);
        for (const double eager : {-1.0, 2e6}) {
          auto network = plain(eager);
          network.copy = Curve(0, 7);
          network.board = BoardCosts{
              .wait_ps = 1e5, .slot_bytes = 3e5, .publish = Curve(0, 20), .gather = Curve(0, 30)};
          const auto one = simulate(workload, network, {.collapse = false});
          const auto fast = simulate(workload, network);
          EXPECT_EQ(one.end, fast.end) << to_string(setting);
          EXPECT_EQ(one.messages, fast.messages) << to_string(setting);
          EXPECT_NEAR(one.bytes_sent, fast.bytes_sent, 1e-3) << to_string(setting);
          EXPECT_NEAR(one.bytes_sent, one.bytes_received, 1e-3) << to_string(setting);
          EXPECT_NEAR(one.idle, fast.idle, 1e-9) << to_string(setting);
          for (const std::uint64_t seed : {1, 2, 3})
            EXPECT_EQ(simulate(workload, network, {.collapse = false, .shuffle_seed = seed}).end,
                      one.end)
                << to_string(setting);
        }
      }
}

TEST(Symmetry, found_by_a_few_ranks_holds_for_all) {
  int found = 0;
  for (const auto& algorithm : algorithms())
    for (int size = 2; size <= 33; ++size)
      for (const auto& setting : settings(algorithm, size)) {
        const auto schedule = [&](int rank) {
          return algorithm.make({rank, size, setting.root, setting.segments, setting.node_of});
        };
        const auto symmetry = find_symmetry(size, schedule);
        if (symmetry == Symmetry::none) continue;
        ++found;
        const auto first = schedule(0);
        for (int rank = 1; rank < size; ++rank)
          EXPECT_TRUE(is_image(first, schedule(rank), symmetry)) << to_string(setting) << rank;
      }
  EXPECT_GT(found, 250);
  const auto of = [](std::string_view name, int size) {
    const auto& algorithm = find_algorithm(allreduce, name);
    return find_symmetry(size, [&](int rank) { return algorithm.make({rank, size, 0, 1, {}}); });
  };
  EXPECT_EQ(of("ring", 12), Symmetry::shift);
  EXPECT_EQ(of("halving_doubling", 16), Symmetry::flip);
  EXPECT_EQ(of("halving_doubling", 12), Symmetry::none);
  EXPECT_EQ(of("binomial", 8), Symmetry::none);
}

TEST(Simulate, faster_links_are_never_slower) {
  for (const auto& algorithm : algorithms()) {
    const Place place{.size = 12, .node_of = {}};
    if (!algorithm.fits(place, {})) continue;
    const auto workload = workload_of(algorithm, place, 1e6);
    Picoseconds before = 0;
    for (const double slower : {1, 2, 4, 8}) {
      auto network = plain();
      network.one_way = Curve(kAlpha, kBeta * slower);
      const auto end = simulate(workload, network).end.at;
      EXPECT_GE(end, before) << algorithm.name;
      before = end;
    }
  }
}

// A thousand messages of one sender that wait at their receiver come out in the order they went in.
TEST(Simulate, messages_of_one_route_stay_in_order) {
  constexpr int kMessages = 1000;
  const auto schedule = [](int rank) {
    Builder b("queue", rank, 2, kMessages, kMessages);
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      if (rank == 0) b.send(1, in(0, i % 7 + 1));
      if (rank == 1) b.recv(0, out(0, i % 7 + 1));
      if (rank == 1 && i == 0) {
        b.next_round();
        b.reduce(in(0, kMessages), out(0, kMessages));
      }
      b.next_round();
    }
    return b.finish(b.round());
  };
  const Workload workload{.size = 2, .bytes = kMessages, .schedule = schedule};
  Network network;
  network.one_way = Curve(0, 1);
  network.eager_bytes = 1e6;
  Picoseconds sent = 0;
  for (int i = 0; i < kMessages; ++i) sent += i % 7 + 1;
  EXPECT_EQ(simulate(workload, network).end.at, sent);
  network.reduce = Curve(0, 1000);  // the receiver is late: all others wait for it
  EXPECT_EQ(simulate(workload, network).end.at, 1 + 1000 * kMessages);
}

TEST(Simulate, ranks_that_wait_in_a_circle_are_named) {
  const auto schedule = [](int rank) {
    Builder b("circle", rank, 2, 1, 1);
    b.recv(1 - rank, out(0));
    b.next_round();
    b.send(1 - rank, out(0));
    return b.finish(2);
  };
  const Workload workload{.size = 2, .bytes = 8, .schedule = schedule};
  try {
    simulate(workload, plain());
    FAIL() << "went through";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::not_verified);
    EXPECT_NE(std::string(error.what()).find("rank 0 never gets past round 0"), std::string::npos)
        << error.what();
  }
}

TEST(Simulate, shared_memory_needs_a_board_and_goes_in_passes) {
  EXPECT_THROW(run(allreduce, "flat", 4, 100, plain()), Error);
  auto network = plain();
  network.board = BoardCosts{
      .wait_ps = 1000, .slot_bytes = 1000, .publish = Curve(0, 1), .gather = Curve(0, 2)};
  network.reduce = Curve(0, 4);
  const auto once = run(allreduce, "flat", 3, 1000, network);
  EXPECT_EQ(once.passes, 1U);
  EXPECT_EQ(once.end.at, 1000 + 1000 + 2 * 2000 + 4000);
  const auto often = run(allreduce, "flat", 3, 100'000, network);
  EXPECT_EQ(often.passes, 100U);
  EXPECT_EQ(often.end.at, 100 * (1000 + 1000 + 2 * 2000 + 4000));
}

TEST(Simulate, more_time_than_can_be_counted_is_refused) {
  Network network;
  network.one_way = Curve(0, 1e12);
  EXPECT_THROW(run(broadcast, "linear", 2, 1e9, network), Error);
}

// 110 MB at 25 GB/s: flat in the number of workers, not logarithmic.
TEST(Simulate, bandwidth_bound_allreduce_does_not_grow_with_workers) {
  Network network;
  network.one_way = Curve(0, kBeta);
  const auto at = [&](int size) {
    return static_cast<double>(
        run(allreduce, "halving_doubling", size, 110'278'272, network).end.at);
  };
  EXPECT_NEAR(at(8) / 1e9, 7.72, 0.005);
  EXPECT_NEAR(at(16) / at(8), 1.071, 0.0005);
  EXPECT_NEAR(at(32) / at(8), 1.107, 0.0005);
}

}  // namespace
}  // namespace sinew
