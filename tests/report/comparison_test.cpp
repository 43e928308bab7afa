// Two runs beside each other: ratios, significance, and nothing averaged that is no repeat.
#include "report/comparison.hpp"

#include <gtest/gtest.h>

#include <sinew/error.hpp>
#include "support/scripted_run.hpp"

namespace sinew::report {
namespace {

using test::ScriptedRun;

/// Iterations of about `compute` seconds, differing a little from each other.
Summary run_of(double compute, int steps = 30, bool assumed = false) {
  ScriptedRun run(2);
  if (assumed) run.info("times", "assumed");
  for (int step = 0; step < steps; ++step) {
    for (int rank = 0; rank < 2; ++rank) run.call(rank, "compute", compute + 0.001 * (step % 3));
    run.meet("MPI_Allreduce", 0.01, {.bytes = 1 << 20});
    run.end_iteration();
  }
  return run.summary();
}

const ComparisonRow& row(const Comparison& comparison, std::string_view what) {
  for (const auto& one : comparison.rows)
    if (one.what == what) return one;
  throw std::runtime_error("no row");
}

TEST(Comparison, tells_a_difference_from_chance) {
  const auto slower = compare({"a", {run_of(0.1)}}, {"b", {run_of(0.11)}});
  EXPECT_EQ(row(slower, "iteration").verdict, Verdict::worse);
  EXPECT_NEAR(row(slower, "iteration").ratio(), 0.121 / 0.111, 1e-3);
  EXPECT_EQ(row(slower, "iteration").before_samples, 30U);
  EXPECT_EQ(row(slower, "elapsed").verdict, Verdict::unknown) << "one run each";
  const auto same = compare({"a", {run_of(0.1)}}, {"b", {run_of(0.1001)}});
  EXPECT_EQ(row(same, "iteration").verdict, Verdict::same);
  const auto faster = compare({"a", {run_of(0.1)}}, {"b", {run_of(0.05)}});
  EXPECT_EQ(row(faster, "iteration").verdict, Verdict::better);
}

TEST(Comparison, of_repeats_counts_runs_and_not_iterations) {
  const Side before{"a", {run_of(0.1), run_of(0.101), run_of(0.099)}};
  const Side after{"b", {run_of(0.12), run_of(0.121), run_of(0.119)}};
  const auto comparison = compare(before, after);
  EXPECT_EQ(row(comparison, "iteration").before_samples, 3U);
  EXPECT_EQ(row(comparison, "elapsed").verdict, Verdict::worse);
  const auto table = repeats_table(before);
  ASSERT_FALSE(table.rows.empty());
  EXPECT_EQ(table.rows[0][0], "elapsed");
  EXPECT_NE(table.rows[0][2], "one sample");
}

TEST(Comparison, fails_over_a_limit_only_beyond_chance) {
  EXPECT_TRUE(worse_than(compare({"a", {run_of(0.1)}}, {"b", {run_of(0.1)}}), 0.05).empty());
  EXPECT_TRUE(worse_than(compare({"a", {run_of(0.1)}}, {"b", {run_of(0.103)}}), 0.05).empty());
  EXPECT_FALSE(worse_than(compare({"a", {run_of(0.1)}}, {"b", {run_of(0.12)}}), 0.05).empty());
  EXPECT_TRUE(worse_than(compare({"a", {run_of(0.1)}}, {"b", {run_of(0.05)}}), 0.05).empty());
}

TEST(Comparison, never_averages_what_was_measured_with_what_was_assumed) {
  const Side mixed{"a", {run_of(0.1), run_of(0.1, 30, true)}};
  EXPECT_THROW((void)compare(mixed, mixed), Error);
  EXPECT_THROW((void)repeats_table(mixed), Error);
  const auto beside = compare({"a", {run_of(0.1)}}, {"b", {run_of(0.1, 30, true)}});
  EXPECT_EQ(row(beside, "iteration").after.source, Source::assumed);
  ASSERT_FALSE(beside.notes.empty()) << "said beside the ratio";
  EXPECT_EQ(row(beside, "on the wire").before.source, Source::modelled);
}

TEST(Comparison, configurations_differ_by_what_was_run) {
  trace::Profile a, b;
  a.ranks.resize(2);
  b.ranks.resize(2);
  EXPECT_EQ(configuration_of(a), configuration_of(b));
  b.ranks[0].info["scheme"] = "oktopk";
  EXPECT_NE(configuration_of(a), configuration_of(b));
  b = a;
  b.ranks.resize(3);
  EXPECT_NE(configuration_of(a), configuration_of(b));
}

TEST(Comparison, says_when_the_work_differs) {
  const auto comparison = compare({"a", {run_of(0.1, 30)}}, {"b", {run_of(0.1, 60)}});
  ASSERT_EQ(comparison.notes.size(), 1U);
  EXPECT_NE(comparison.notes[0].find("30 iterations before and 60 after"), std::string::npos);
}

}  // namespace
}  // namespace sinew::report
