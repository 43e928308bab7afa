// Every finding has a run that brings it about and one, like it, that must not.
#include "report/performance_findings.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "model/network_file.hpp"
#include "support/scripted_run.hpp"

namespace sinew::report {
namespace {

using test::ScriptedRun;

bool finds(const Summary& summary, std::string_view id) {
  for (const auto& finding : summary.findings)
    if (finding.id == id) {
      EXPECT_FALSE(finding.claim.empty());
      EXPECT_FALSE(finding.arithmetic.empty());
      EXPECT_FALSE(finding.evidence.empty());
      EXPECT_FALSE(finding.advice.empty());
      EXPECT_FALSE(finding.command.empty());
      EXPECT_GE(finding.cost_s, 0);
      if (finding.benefit) {
        EXPECT_LE(finding.benefit->low.value, finding.benefit->high.value);
        EXPECT_FALSE(finding.benefit->how.empty());
      }
      return true;
    }
  return false;
}

std::string ids(const Summary& summary) {
  std::string text;
  for (const auto& finding : summary.findings) text += finding.id + ' ';
  return text;
}

#define EXPECT_FOUND(run, id) EXPECT_TRUE(finds((run).summary(), id)) << ids((run).summary())
#define EXPECT_NOT_FOUND(run, id) EXPECT_FALSE(finds((run).summary(), id)) << ids((run).summary())

/// Ranks that compute and reduce a gradient, `steps` times.
struct Training {
  int ranks = 4, steps = 30;
  double compute = 0.1, reduce = 0.02, hidden = 0;
  std::uint64_t bytes = 40 << 20;
  int buckets = 1;
};

ScriptedRun training(const Training& t) {
  ScriptedRun run(t.ranks);
  for (int step = 0; step < t.steps; ++step) {
    for (int rank = 0; rank < t.ranks; ++rank) {
      if (t.hidden > 0) run.beside(rank, "MPI_Iallreduce", t.hidden, {.bytes = t.bytes});
      run.call(rank, "compute", t.compute);
    }
    for (int i = 0; i < t.buckets; ++i)
      run.meet("MPI_Allreduce", t.reduce / t.buckets,
               {.bytes = t.bytes / static_cast<std::uint64_t>(t.buckets)});
    run.end_iteration();
  }
  return run;
}

TEST(Findings, small_collectives) {
  const auto run = [](std::uint64_t bytes) {
    ScriptedRun result(2);
    result.meet("MPI_Bcast", 0.001, {.bytes = 8 << 20});  // the gradients are not elsewhere
    for (int step = 0; step < 30; ++step) {
      for (int rank = 0; rank < 2; ++rank) result.call(rank, "compute", 0.01);
      for (int i = 0; i < 8; ++i) result.meet("MPI_Allreduce", 0.001, {.bytes = bytes});
      result.end_iteration();
    }
    return result;
  };
  EXPECT_FOUND(run(64), "small-collectives");
  EXPECT_NOT_FOUND(run(1 << 20), "small-collectives");
}

/// Rank `late` computes longer each step; -1: another rank each time; -2: none.
ScriptedRun uneven(int late, double more) {
  ScriptedRun run(4);
  for (int step = 0; step < 40; ++step) {
    for (int rank = 0; rank < 4; ++rank)
      run.call(rank, "compute",
               rank == late || (late == -1 && rank == step % 4) ? 0.1 + more : 0.1);
    run.meet("MPI_Allreduce", 0.01, {.bytes = 8 << 20});
    run.end_iteration();
  }
  return run;
}

TEST(Findings, waiting_is_not_transfer) {
  EXPECT_FOUND(uneven(-1, 0.1), "waiting-not-transfer");
  EXPECT_NOT_FOUND(uneven(-2, 0), "waiting-not-transfer");
}

TEST(Findings, one_straggler) {
  EXPECT_FOUND(uneven(2, 0.05), "straggler");
  const auto summary = uneven(2, 0.05).summary();
  ASSERT_TRUE(summary.imbalance);
  EXPECT_EQ(summary.imbalance->last_rank, 2);
  EXPECT_EQ(summary.imbalance->last, 40U);
  EXPECT_NOT_FOUND(uneven(-1, 0.05), "straggler") << "each in its turn";
  EXPECT_NOT_FOUND(uneven(2, 0.001), "straggler") << "too little to matter";
}

TEST(Findings, load_imbalance) {
  const auto two_slow = [](double more) {
    ScriptedRun run(4);
    for (int step = 0; step < 40; ++step) {
      for (int rank = 0; rank < 4; ++rank)
        run.call(rank, "compute", rank < 2 ? 0.1 + more + 0.001 * ((rank + step) % 2) : 0.1);
      run.meet("MPI_Allreduce", 0.01, {.bytes = 8 << 20});
    }
    return run;
  };
  EXPECT_FOUND(two_slow(0.08), "load-imbalance");
  EXPECT_NOT_FOUND(two_slow(0.0), "load-imbalance");
}

/// Warm-up steps of a whole gradient, then sparse ones.
ScriptedRun warm_up(int dense, int sparse, double selecting = 0.005, double dense_compute = 0.05) {
  ScriptedRun run(4);
  run.info("density", "0.02");
  run.info("dense_bytes", "40000000");
  for (int step = 0; step < dense + sparse; ++step) {
    for (int rank = 0; rank < 4; ++rank)
      run.call(rank, "compute", step < dense ? dense_compute : 0.05);
    if (step < dense) {
      run.meet("MPI_Allreduce", 0.06, {.bytes = 40'000'000});
    } else {
      for (int rank = 0; rank < 4; ++rank) run.call(rank, "compress", selecting);
      run.meet("MPI_Allgatherv", 0.01, {.bytes = 400'000});
    }
    run.end_iteration();
  }
  return run;
}

TEST(Findings, dense_phase) {
  EXPECT_FOUND(warm_up(60, 20), "dense-phase");
  EXPECT_NOT_FOUND(warm_up(4, 200), "dense-phase");
  const auto steps = warm_up(60, 20).summary().steps;
  ASSERT_EQ(steps.phases.size(), 2U);
  EXPECT_EQ(steps.phases[0].name, "dense");
  EXPECT_EQ(steps.phases[0].iterations, 60U);
  EXPECT_EQ(steps.phases[1].name, "sparse");
  EXPECT_EQ(steps.phases[1].iterations, 20U);
  EXPECT_NEAR(steps.phases[0].split.elapsed_s, 0.11, 1e-6);
}

TEST(Findings, density_not_held) {
  const auto told = [](const char* density) {
    auto run = warm_up(10, 30);
    run.info("realised_density", density);
    return run;
  };
  EXPECT_FOUND(told("0.054"), "density-not-held");
  EXPECT_NOT_FOUND(told("0.021"), "density-not-held");
}

TEST(Findings, no_overlap) {
  EXPECT_FOUND(training({.reduce = 0.05, .bytes = 32 << 20, .buckets = 4}), "no-overlap");
  EXPECT_NOT_FOUND(training({.reduce = 0.02, .hidden = 0.08, .bytes = 32 << 20, .buckets = 4}),
                   "no-overlap");
}

TEST(Findings, buckets_too_small) {
  EXPECT_FOUND(training({.reduce = 0.05, .bytes = 1 << 20, .buckets = 32}), "buckets-too-small");
  EXPECT_NOT_FOUND(training({.reduce = 0.05, .bytes = 64 << 20, .buckets = 8}),
                   "buckets-too-small");
}

TEST(Findings, buckets_too_large) {
  EXPECT_FOUND(training({.reduce = 0.05}), "buckets-too-large");
  EXPECT_NOT_FOUND(training({.reduce = 0.05, .buckets = 5}), "buckets-too-large");
}

TEST(Findings, oversubscribed_cores) {
  auto crowded = training({.ranks = 4}), enough = training({.ranks = 4});
  crowded.info("cores", "2");
  enough.info("cores", "4");
  EXPECT_FOUND(crowded, "oversubscribed");
  EXPECT_NOT_FOUND(enough, "oversubscribed");
}

TEST(Findings, far_under_the_link) {
  // 1.5 x 40 MiB in 50 ms is 1.26 GB/s.
  const auto run = training({.reduce = 0.05});
  EXPECT_TRUE(finds(run.summary({.network = {}, .link_bytes_per_s = 25e9}), "under-the-link"));
  EXPECT_FALSE(finds(run.summary({.network = {}, .link_bytes_per_s = 2e9}), "under-the-link"));
  EXPECT_FALSE(finds(run.summary(), "under-the-link")) << "no link was named";
}

TEST(Findings, another_algorithm) {
  const auto ran_as = [](const char* algorithm) {
    ScriptedRun run(8);
    for (int i = 0; i < 50; ++i)
      run.meet("allreduce", 0.1, {.bytes = 64 << 20, .algorithm = algorithm});
    return run.summary(
        {.network = parse_network_line("alpha=5us,bw=10GB/s"), .link_bytes_per_s = {}});
  };
  EXPECT_TRUE(finds(ran_as("recursive_doubling"), "other-algorithm"))
      << ids(ran_as("recursive_doubling"));
  EXPECT_FALSE(finds(ran_as("ring"), "other-algorithm"));
}

TEST(Findings, compression_that_costs_more_than_it_saves) {
  EXPECT_FOUND(warm_up(30, 30, 0.2), "compression-costs");
  EXPECT_NOT_FOUND(warm_up(30, 30, 0.005), "compression-costs");
}

// Iterations that are shorter for another reason are not what it is blamed with.
TEST(Findings, compression_that_costs_more_though_iterations_are_shorter) {
  const auto claim = [](double dense_compute) {
    for (const auto& finding : warm_up(30, 30, 0.06, dense_compute).summary().findings)
      if (finding.id == "compression-costs") return finding.claim;
    return std::string("not found");
  };
  EXPECT_EQ(claim(0.05),
            "Compression costs more than it saves: an iteration takes 120.00 ms with it and 110.00 "
            "ms without.");
  EXPECT_EQ(claim(0.10),
            "Compression costs more than it saves: 60.00 ms an iteration for 50.00 ms less exposed "
            "communication.");
}

TEST(Findings, slow_input) {
  const auto run = [](double loading) {
    ScriptedRun result(2);
    for (int step = 0; step < 20; ++step) {
      for (int rank = 0; rank < 2; ++rank) {
        result.call(rank, "data", loading);
        result.call(rank, "compute", 0.1);
      }
      result.meet("MPI_Allreduce", 0.01, {.bytes = 1 << 20});
      result.end_iteration();
    }
    return result;
  };
  EXPECT_FOUND(run(0.05), "data-loading");
  EXPECT_NOT_FOUND(run(0.001), "data-loading");
}

TEST(Findings, a_figure_that_is_an_assumption) {
  auto made_up = training({});
  made_up.info("times", "assumed");
  EXPECT_FOUND(made_up, "assumption");
  EXPECT_NOT_FOUND(training({}), "assumption");
  EXPECT_TRUE(finds(training({}).summary({.network = {}, .link_bytes_per_s = 1e9}), "assumption"));
}

TEST(Findings, a_healthy_run_has_none) {
  const auto run = training({.reduce = 0.002, .hidden = 0.05, .buckets = 5});
  EXPECT_TRUE(run.summary().findings.empty()) << ids(run.summary());
}

TEST(Findings, come_worst_first) {
  auto run = warm_up(60, 20, 0.2);
  run.info("cores", "2");
  const auto findings = run.summary().findings;
  ASSERT_GE(findings.size(), 2U);
  for (std::size_t i = 1; i < findings.size(); ++i)
    EXPECT_GE(findings[i - 1].cost_s, findings[i].cost_s);
}

TEST(Split, adds_up_for_every_iteration_and_rank) {
  const auto summary = training({.hidden = 0.05}).summary();
  ASSERT_EQ(summary.steps.iterations.size(), 30U);
  for (const auto& one : summary.steps.iterations) {
    const auto& s = one.split;
    EXPECT_NEAR(s.compute_s + s.data_s + s.compress_s + s.moving_s + s.waiting_s + s.other_s(),
                s.elapsed_s, 1e-9);
    EXPECT_NEAR(s.compute_s, 0.1, 1e-9);
    EXPECT_NEAR(s.hidden_s, 0.05, 1e-9);
    EXPECT_NEAR(s.moving_s, 0.02, 1e-9);
  }
}

}  // namespace
}  // namespace sinew::report
