// Calibration closes the circle: timings simulated on a known network lead back to it.
#include "model/calibration.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include <sinew/error.hpp>
#include "model/crowding.hpp"
#include "model/select.hpp"
#include "model/simulate.hpp"

namespace sinew {
namespace {

Network known() {
  Network network;
  network.one_way = Curve({{4096, 4e5, 150}, {0, 1e6, 80}});
  network.exchange = Curve({{4096, 5e5, 200}, {0, 1.2e6, 100}});
  network.reduce = Curve(2e4, 30);
  network.copy = Curve(1e4, 20);
  network.call_ps = 1e5;
  network.board = BoardCosts{.wait_ps = 2e5, .slot_bytes = 1 << 19};
  network.board->publish = network.board->gather = Curve(3e4, 50);
  network.board->pull = Curve(6e5, 90);
  return network;
}

double simulated(const Network& network, int ranks, const Experiment& what) {
  const auto& algorithm = find_algorithm(what.collective, what.algorithm);
  Place place{.size = ranks, .node_of = {}};
  place.segments = segments_for(algorithm, static_cast<std::uint64_t>(what.bytes), 0);
  auto workload = workload_of(algorithm, place, what.bytes);
  workload.in_place = is_in_place(what.collective);
  return static_cast<double>(simulate(workload, network).end.at);
}

std::vector<double> message_sizes() {
  std::vector<double> sizes;
  for (double bytes = 8; bytes <= (1 << 19); bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

Measurements measure(const Network& network, int ranks) {
  Measurements measured{.ranks = ranks, .slot_bytes = 1 << 19, .board = true};
  const auto sizes = message_sizes();
  for (const auto& what : instruments(ranks, true, sizes))
    measured.timings.push_back({what, simulated(network, ranks, what)});
  for (const double bytes : sizes) {
    const auto reduce = network.reduce.at(bytes), copy = network.copy.at(bytes);
    measured.reduce.push_back({bytes, static_cast<double>(reduce.alpha + reduce.beta)});
    measured.copy.push_back({bytes, static_cast<double>(copy.alpha + copy.beta)});
  }
  return measured;
}

TEST(Calibration, of_a_known_network_finds_it_again) {
  for (const int ranks : {2, 4, 8}) {
    const auto truth = known();
    const auto found = derive(measure(truth, ranks));
    EXPECT_NEAR(found.call_ps / truth.call_ps, 1, 0.02) << ranks;
    EXPECT_NEAR(found.board->wait_ps / truth.board->wait_ps, 1, 0.02) << ranks;
    for (const double bytes : {8.0, 1000.0, 50'000.0, 500'000.0}) {
      const auto near = [&](const Curve& a, const Curve& b) {
        const auto x = a.at(bytes), y = b.at(bytes);
        EXPECT_NEAR(static_cast<double>(x.alpha + x.beta) / static_cast<double>(y.alpha + y.beta),
                    1, 0.02)
            << ranks << ' ' << bytes;
      };
      near(found.one_way, truth.one_way);
      near(found.exchange, truth.exchange);
      near(found.reduce, truth.reduce);
      near(found.copy, truth.copy);
      near(found.board->gather, truth.board->gather);
      near(found.board->pull, truth.board->pull);
    }
    EXPECT_LT(found.provenance.left_out_error, 0.02);
  }
}

TEST(Calibration, predicts_schedules_that_it_was_not_fitted_to) {
  const auto truth = known();
  const auto found = derive(measure(truth, 4));
  std::vector<Timing> timings;
  for (const auto& [collective, algorithm] : {std::pair{Collective::allreduce, "halving_doubling"},
                                              {Collective::allreduce, "direct"},
                                              {Collective::allgather, "bruck"},
                                              {Collective::alltoall, "pairwise"},
                                              {Collective::reduce_scatter, "pairwise"}})
    for (const double bytes : {96.0, 12e3, 300e3}) {
      const Experiment what{collective, algorithm, bytes};
      timings.push_back({what, simulated(truth, 4, what)});
    }
  const auto ratios = compare(found, 4, timings);
  ASSERT_EQ(ratios.size(), timings.size());
  for (const auto& ratio : ratios) EXPECT_NEAR(ratio.factor, 1, 0.05) << ratio.algorithm;
}

TEST(Calibration, of_a_crowded_host_finds_what_a_switch_takes) {
  auto truth = known();
  truth.cores = {.count = 2, .switch_ps = 1.7e6};
  for (const int ranks : {4, 8}) {
    std::vector<std::string> warnings;
    const auto there = crowded(truth, ranks, warnings);
    std::vector<Timing> timings;
    for (const std::string algorithm : {"binomial", "ring", "flat"}) {
      const Experiment what{Collective::allreduce, algorithm, 32};
      timings.push_back({what, simulated(there, ranks, what)});
    }
    EXPECT_NEAR(switch_ps(known(), ranks, 2, timings) / 1.7e6, 1, 0.01);
  }
}

TEST(Calibration, three_ranks_have_no_doubling_and_need_none) {
  const auto found = derive(measure(known(), 3));
  EXPECT_EQ(found.call_ps, 0);
  EXPECT_NEAR(static_cast<double>(found.exchange.at(1e5).beta), 1e7, 1e6);
}

TEST(Calibration, a_missing_timing_is_named) {
  auto measured = measure(known(), 2);
  measured.timings.erase(measured.timings.begin() + 1);
  EXPECT_THROW(derive(measured), Error);
  EXPECT_THROW(derive({}), Error);
}

TEST(ErrorBar, holds_19_of_20_and_always_the_prediction) {
  std::vector<double> ratios;
  for (int i = 0; i < 100; ++i) ratios.push_back(0.8 + i * 0.01);
  const auto bar = error_bar(ratios);
  EXPECT_NEAR(bar.low, 0.82 / 1.05, 1e-9);
  EXPECT_NEAR(bar.high, 1.77 * 1.05, 1e-9);
  const std::vector<double> all_slower{2, 2, 2};
  EXPECT_LE(error_bar(all_slower).low, 1);
  EXPECT_EQ(error_bar({}), ErrorBar{});
  EXPECT_NEAR(median_error(all_slower), 0.5, 1e-12);
}

}  // namespace
}  // namespace sinew
