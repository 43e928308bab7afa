// Training steps: overlap by hand, scaling, patterns, islands, periodic synchronisation, and what
// is wrong about figures that were published.
#include "model/scaling.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "model/expected_max.hpp"
#include "model/network_file.hpp"
#include "model/overlap.hpp"
#include "model/stated.hpp"

namespace sinew {
namespace {

TrainingRun shipped(const std::string& name) {
  const auto path = std::string(SINEW_SOURCE_DIR "/examples/runs/") + name + ".toml";
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return parse_run(text.str(), path);
}

TrainingRun described() {
  TrainingRun run;
  run.buckets = {{1e6, -1}, {1e6, -1}, {2e6, -1}};
  run.forward_ms = 4;
  run.backward_ms = 8;
  run.update_ms = 1;
  run.workers = 4;
  run.steps = 100;
  run.alpha_us = 10;
  run.gbytes_per_s = 1;
  return run;
}

StepPrediction at(const TrainingRun& run, int workers) {
  return StepPredictor(run, nullptr, {}).at(workers);
}

TEST(Overlap, three_buckets_by_hand) {
  // Ready at 2, 5 and 9, taking 4, 1 and 3: they end at 6, 7 and 12.
  const Travelling buckets[] = {{2, 4}, {5, 1}, {9, 3}};
  EXPECT_EQ(last_arrival(buckets), 12);
  EXPECT_EQ(exposed(buckets, 9), 3);
  EXPECT_EQ(exposed(buckets, 20), 0);
  const Travelling no_last[] = {{2, 4}, {9, 0}};
  EXPECT_EQ(exposed(no_last, 9), 0);
}

TEST(Overlap, layers_that_arrive_while_others_compute) {
  // Arrive at 3, 6, 9; computed 3..5, 6..8, 9..11.
  const Travelling slow[] = {{0, 3}, {0, 3}, {0, 3}};
  const double compute[] = {2, 2, 2};
  EXPECT_EQ(prefetched(slow, compute), 11);
  const Travelling quick[] = {{0, 1}, {0, 1}, {0, 1}};
  EXPECT_EQ(prefetched(quick, compute), 7);
}

TEST(ExpectedMax, is_that_of_the_table) {
  EXPECT_NEAR(expected_normal_max(2), 0.5642, 1e-3);
  EXPECT_NEAR(expected_normal_max(8), 1.4236, 1e-3);
  EXPECT_NEAR(expected_normal_max(1000), 3.2414, 2e-3);
  EXPECT_NEAR(expected_normal_max(100000), 4.38, 0.02);
  EXPECT_EQ(expected_normal_max(1), 0);
}

TEST(Steps, without_overlap_everything_adds_up) {
  const auto step = at(described(), 4);
  EXPECT_NEAR(step.step_ms, 13 + step.communication_ms, 1e-9);
  EXPECT_EQ(step.exposed_ms, step.communication_ms);
  EXPECT_NEAR(step.efficiency, 13 / step.step_ms, 1e-12);
  EXPECT_NEAR(step.alpha + step.beta + step.gamma + step.wait, 1, 1e-6);
  EXPECT_NEAR(step.run_s, 100 * step.step_ms / 1e3, 1e-9);
  EXPECT_NEAR(at(described(), 8).run_s, 50 * at(described(), 8).step_ms / 1e3, 1e-9);
}

TEST(Steps, one_worker_alone_only_computes) {
  const auto step = at(described(), 1);
  EXPECT_EQ(step.step_ms, 13);
  EXPECT_EQ(step.communication_ms, 0);
  EXPECT_EQ(step.efficiency, 1);
}

TEST(Steps, overlap_hides_what_the_backward_pass_covers) {
  auto run = described();
  run.overlap = 1;
  const auto step = at(run, 4);
  EXPECT_LT(step.exposed_ms, at(described(), 4).exposed_ms);
  // The last bucket is ready when the backward pass ends, so all of it is seen.
  StepPredictor predictor(run, nullptr, {});
  CostBook book(network_of(run, nullptr));
  EXPECT_NEAR(step.exposed_ms,
              static_cast<double>(book.best(Collective::allreduce, 4, 2e6).end.at) / 1e9, 1e-9);
}

TEST(Steps, never_get_shorter_by_worse_links_or_more_spread) {
  for (const auto* pattern : {"ddp", "zero3", "moe"})
    for (const double overlap : {0.0, 1.0}) {
      auto run = described();
      run.pattern = pattern;
      run.overlap = overlap;
      run.moe_layers = 2;
      run.moe_bytes = 1e5;
      auto slower = run;
      slower.gbytes_per_s /= 2;
      auto later = run;
      later.alpha_us *= 2;
      auto spread = run;
      spread.spread = 0.1;
      for (const int workers : {2, 8, 32}) {
        const auto base = at(run, workers);
        EXPECT_GE(at(slower, workers).step_ms, base.step_ms) << pattern;
        EXPECT_GE(at(later, workers).step_ms, base.step_ms) << pattern;
        EXPECT_GE(at(spread, workers).step_ms, base.step_ms) << pattern;
        EXPECT_GE(base.exposed_ms, 0);
        EXPECT_LE(base.exposed_ms, base.communication_ms + 1e-9);
      }
    }
}

TEST(Patterns, spreading_parameters_moves_half_as_much_again) {
  auto run = described();
  run.alpha_us = 0;
  const double summed = at(run, 8).communication_ms;
  run.pattern = "zero3";  // two allgathers and a reduce-scatter instead of an allreduce
  EXPECT_NEAR(at(run, 8).communication_ms, 1.5 * summed, 1e-6 * summed);
}

TEST(Patterns, experts_wait_for_the_most_popular) {
  auto run = described();
  run.pattern = "moe";
  run.moe_layers = 3;
  run.moe_bytes = 8e6;
  const double even = at(run, 8).communication_ms;
  run.moe_imbalance = 2;
  const double uneven = at(run, 8).communication_ms;
  // Twelve alltoalls in which one worker takes in seven times two million bytes.
  EXPECT_NEAR(uneven - even, 12 * 7 * 1.0, 0.1);
}

TEST(Periodic, synchronising_every_h_steps_costs_a_hth) {
  auto run = described();
  const double always = at(run, 8).exposed_ms;
  run.local_steps = 50;
  EXPECT_NEAR(at(run, 8).exposed_ms, always / 50, 1e-9);
  run.overlap = 1;  // and nothing, where it fits behind the steps between
  EXPECT_EQ(at(run, 8).exposed_ms, 0);
}

TEST(Inputs, that_change_nothing_are_named) {
  auto run = described();
  run.density = 0.05;
  const std::string inputs[] = {"density", "link.alpha_us", "spread", "step.forward_ms"};
  const int workers[] = {4};
  const auto idle = [&] {
    StepPredictor predictor(run, nullptr, {});
    return without_effect(predictor, nullptr, {}, inputs, workers);
  };
  EXPECT_EQ(idle(), (std::vector<std::string>{"density", "spread"}));
  run.scheme = "oktopk";
  run.spread = 0.1;
  EXPECT_TRUE(idle().empty());
}

TEST(ErrorBars, cover_communication_only) {
  auto network = parse_network_line("alpha=10us,bw=1GB/s");
  network.error = {0.5, 2};
  const auto step = StepPredictor(described(), &network, {}).at(4);
  EXPECT_NEAR(step.low_ms, 13 + step.exposed_ms / 2, 1e-9);
  EXPECT_NEAR(step.high_ms, 13 + step.exposed_ms * 2, 1e-9);
}

// The published table says x1.89 at 16 workers and x4.4 at 32.
TEST(PublishedRun, scales_as_bandwidth_does) {
  StepPredictor predictor(shipped("lstm_an4"), nullptr, {});
  const double first = predictor.at(8).communication_ms;
  EXPECT_NEAR(first, 7.75, 0.01);
  EXPECT_NEAR(predictor.at(16).communication_ms / first, 1.07, 0.005);
  EXPECT_NEAR(predictor.at(32).communication_ms / first, 1.11, 0.005);
  EXPECT_GT(predictor.at(32).efficiency, 0.99);
  EXPECT_EQ(predictor.half_efficient(8), 1 << 16);
}

TEST(PublishedRun, its_three_mistakes_are_named) {
  StepPredictor predictor(shipped("lstm_an4"), nullptr, {});
  const auto objections = check_stated(predictor);
  ASSERT_EQ(objections.size(), 3U);
  EXPECT_EQ(objections[0].id, "bytes-over-bandwidth");
  EXPECT_NEAR(objections[0].modelled, 7.75, 0.01);
  EXPECT_EQ(objections[1].id, "ranks-in-series");
  EXPECT_NEAR(objections[1].modelled, 0.99, 0.005);
  EXPECT_EQ(objections[2].id, "logarithmic-but-bandwidth-bound");
}

TEST(PublishedRun, right_figures_are_not_objected_to) {
  auto run = shipped("lstm_an4");
  run.stated = {.allreduce_ms = 7.8,
                .communication_s = 0.99,
                .operations = 1024,
                .scaling = "bandwidth-bound",
                .at_workers = {{16, 1.06}, {32, 1.1}}};
  StepPredictor predictor(run, nullptr, {});
  EXPECT_TRUE(check_stated(predictor).empty());
}

// Seconds a synchronisation over 100 Mbit/s and 30 ms. The table's columns hold for powers of two;
// in between, halving and doubling has to fold the surplus in.
TEST(Internet, is_the_table_of_the_formulas) {
  const auto run = shipped("internet");
  const Sparsity gradient{.elements = run.elements(), .density = 0.01};
  const struct {
    double workers, ring, halving, topka, gtopk, oktopk;
  } rows[] = {{16, 17.4, 16.8, 2.8, 1.7, 1.7},
              {1000, 78, 18.2, 177, 4.1, 61},
              {10000, 618, 18.5, 1765, 5.8, 601},
              {100000, 6018, 18.7, 17645, 7.0, 6001}};
  for (const auto& row : rows) {
    const auto form = [&](std::string_view scheme) {
      return closed_form(scheme, row.workers, gradient, 0.03, 1 / 12.5e6);
    };
    const auto near = [&](double value, double expected) {
      EXPECT_NEAR(value, expected, 0.006 * expected + 0.05) << row.workers;
    };
    near(form("dense").high_s, row.ring);
    near(form("dense").low_s, row.halving);
    near(form("topka").low_s, row.topka);
    near(form("gtopk").low_s, row.gtopk);
    near(form("oktopk").high_s, row.oktopk);
  }
}

TEST(Internet, schedules_agree_with_the_formulas) {
  const auto run = shipped("internet");
  StepPredictor predictor(run, nullptr, {});
  const auto seconds = [&](int workers, std::string_view scheme) {
    return predictor.at(workers, scheme).communication_ms / 1e3;
  };
  EXPECT_NEAR(seconds(16, "dense"), 16.8, 0.05);
  EXPECT_NEAR(seconds(1024, "dense"), 18.2, 0.05);
  EXPECT_NEAR(seconds(131072, "dense"), 18.7, 0.05);
  // Every message of gtopk is preceded by one with its length, which costs a beginning each.
  EXPECT_NEAR(seconds(16, "gtopk"), 1.7 + 8 * 0.03, 0.05);
  EXPECT_NEAR(seconds(1024, "gtopk"), 4.1 + 20 * 0.03, 0.05);
  EXPECT_NEAR(seconds(1024, "topka"), 181, 2);
  // One exchange with owners instead of two: less than the formula's bound.
  EXPECT_LT(seconds(1024, "oktopk"), 61);
  EXPECT_GT(seconds(1024, "oktopk"), 30);
}

TEST(Internet, hierarchy_and_periodic_synchronisation_change_the_run) {
  auto run = shipped("internet");
  const int workers = 100000;
  run.scheme = "oktopk";
  StepPredictor all_alike(run, nullptr, {});
  const double flat = all_alike.at(workers).run_s;
  const auto run_s = [&](const TrainingRun& asked) {
    return StepPredictor(asked, nullptr, {}, &all_alike).at(workers).run_s;
  };
  auto islands = run;
  islands.island_workers = 100;
  auto periodic = run;
  periodic.local_steps = 500;
  auto both = islands;
  both.local_steps = 500;
  EXPECT_GT(flat, 3e6);            // a thousand steps of 50 minutes each
  EXPECT_LT(run_s(islands), 5e4);  // a thousand islands instead of 100,000 workers
  EXPECT_NEAR(run_s(periodic), 1000 + (flat - 1000) / 500, 1);
  EXPECT_LT(run_s(both), 1100);  // next to computing alone, which takes 1000 s
}

}  // namespace
}  // namespace sinew
