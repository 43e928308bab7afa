// What is concluded from the listings of a training, with its figures; and when nothing is.
#include <gtest/gtest.h>

#include "imports/import.hpp"
#include "report/training_findings.hpp"
#include "support/program.hpp"
#include "support/sample.hpp"

namespace sinew::report {
namespace {

using test::has;
using trace::Profile;

Profile imported(const std::string& name) {
  const auto text = test::sample("profiles/" + name);
  const imports::Source source{name, text};
  return imports::import_profile({&source, 1});
}

std::string all_of(const Finding& finding) { return findings_text({finding}); }

double evidence(const Finding& finding, const std::string& name) {
  for (const auto& one : finding.evidence)
    if (one.name == name) return one.value;
  ADD_FAILURE() << "no " << name;
  return -1;
}

TEST(TrainingFindings, eight_byte_allreduces_on_cpus_are_polling_and_skew) {
  const auto profile = imported("mpitrace_training_cpu.txt");
  const auto polling = find_polling(profile);
  ASSERT_TRUE(polling);
  EXPECT_EQ(polling->steps, 236U);
  EXPECT_EQ(polling->small_calls, 7428U);
  EXPECT_EQ(polling->small_bytes, 8U);
  EXPECT_NEAR(polling->per_step(), 31.5, 0.05);
  EXPECT_NEAR(polling->mean_ns(), 766.8e3, 100);
  EXPECT_EQ(polling->next_bytes, 75132U);
  EXPECT_FALSE(polling->waited_share) << "mpitrace does not tell";
  const auto finding = explain(*polling);
  const auto text = all_of(finding);
  for (const char* const part :
       {"31.5 eight-byte allreduces a step are polling and skew", "7,428 / 236 = 31.5",
        "5.696 s: 53.9 % of the time in allreduces", "59,424 bytes, 0.0052 %",
        "One takes 767 us; one of 75,132 bytes, 9,391 times as many, takes 886 us, 1.15 times"})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  EXPECT_NEAR(evidence(finding, "small_calls_a_step"), 31.475, 0.001);
  EXPECT_NEAR(evidence(finding, "share_of_allreduce_time"), 53.86, 0.01);
  EXPECT_EQ(finding.confidence, Confidence::inferred);
  EXPECT_FALSE(find_data_elsewhere(profile)) << "the gradients are here";
}

TEST(TrainingFindings, without_gradients_they_travel_elsewhere_and_ranks_are_out_of_step) {
  const auto profile = imported("mpitrace_training_gpu.txt");
  EXPECT_FALSE(find_polling(profile)) << "nothing tells the steps";
  const auto elsewhere = find_data_elsewhere(profile);
  ASSERT_TRUE(elsewhere);
  EXPECT_EQ(elsewhere->small_calls, 11658U);
  EXPECT_EQ(elsewhere->largest_bytes, 3665U);
  EXPECT_TRUE(
      has(all_of(explain(*elsewhere)), "The gradients travel elsewhere, most likely by NCCL"));
  EXPECT_TRUE(has(all_of(explain(*elsewhere)), "11,658 allreduces of 8 bytes"));
  const auto skew = find_out_of_step(profile);
  ASSERT_TRUE(skew);
  EXPECT_EQ(skew->least, 2);
  EXPECT_EQ(skew->median, 6);
  EXPECT_EQ(skew->most, 7);
  EXPECT_NEAR(skew->least_ns, 3.601e9, 1e6);
  EXPECT_NEAR(skew->most_ns, 8.355e9, 1e6);
  const auto text = all_of(explain(*skew));
  EXPECT_TRUE(has(text, "rank 2 spends 3.60 s in communication, rank 7 8.35 s")) << text;
  EXPECT_TRUE(has(text, "8.35 - 3.60 = 4.75 s")) << text;
  EXPECT_TRUE(has(text, "Rank 2, with the least, is the one the others wait for")) << text;
}

TEST(TrainingFindings, a_timeline_names_the_rank_that_is_late) {
  const auto last = find_last_ready(imported("horovod_timeline.json"));
  ASSERT_TRUE(last);
  EXPECT_EQ(last->rank, 2);
  EXPECT_EQ(last->times, 20U);
  EXPECT_EQ(last->negotiations, 24U);
}

TEST(TrainingFindings, the_quickest_call_bounds_what_waiting_is) {
  const auto polling = find_polling(imported("mpip_training.txt"));
  ASSERT_TRUE(polling);
  EXPECT_NEAR(polling->quickest_ns, 2200, 0.1);
  const auto text = all_of(explain(*polling));
  EXPECT_TRUE(has(text, "The quickest took 2.2 us, the mean 321.0 us.")) << text;
  EXPECT_FALSE(has(text, "does not follow the size")) << "nothing of comparable time to show it";
}

Profile made_up(std::uint64_t small_calls, std::uint64_t large_calls, std::uint64_t large_bytes) {
  Profile profile;
  trace::RankProfile rank;
  rank.rank = 0;
  rank.size = 4;
  rank.elapsed_ns = 1e9;
  const auto add = [&](std::uint64_t bytes, std::uint64_t calls) {
    trace::ProfileKey key;
    key.routine = "MPI_Allreduce";
    key.bytes = bytes;
    trace::Totals totals;
    totals.calls = calls;
    totals.bytes = calls * bytes;
    totals.total_ns = static_cast<double>(calls) * 1000;
    if (calls > 0) rank.rows[key] = totals;
  };
  add(8, small_calls);
  add(large_bytes, large_calls);
  profile.ranks.push_back(rank);
  return profile;
}

TEST(TrainingFindings, a_healthy_run_has_none) {
  EXPECT_TRUE(find_all({}).empty());
  EXPECT_TRUE(find_all(made_up(0, 1000, 1 << 20)).empty());
  EXPECT_TRUE(find_all(made_up(1000, 1000, 1 << 20)).empty()) << "a loss a step";
  EXPECT_FALSE(find_all(made_up(10000, 1000, 1 << 20)).empty());
  EXPECT_TRUE(find_all(made_up(50, 0, 1)).empty()) << "too few to say anything";
}

}  // namespace
}  // namespace sinew::report
