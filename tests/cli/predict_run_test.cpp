// `sinew predict RUN` from outside: described runs, recorded runs, workloads of other tools.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/program.hpp"
#include "support/recorded_run.hpp"

namespace sinew::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;
const std::string kRun = SINEW_SOURCE_DIR "/examples/runs/lstm_an4.toml";

Json predicted(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "predict");
  arguments.emplace_back("--json");
  const auto ran = sinew(arguments);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return Json::parse(ran.out);
}

std::size_t widest(const std::string& text) {
  std::size_t most = 0, begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i)
    if (i == text.size() || text[i] == '\n') {
      most = std::max(most, i - begin);
      begin = i + 1;
    }
  return most;
}

fs::path recorded() { return record_run("predict_recorded_run"); }

TEST(PredictRun, the_published_table_comes_out_right) {
  const auto ran = sinew({"predict", kRun, "--workers", "8..32"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "1.072")) << ran.out;
  EXPECT_TRUE(has(ran.out, "1.109")) << ran.out;
  EXPECT_TRUE(has(ran.out, "Scaling limit: none")) << ran.out;
  EXPECT_TRUE(has(ran.out, "4.41 ms is bytes over bandwidth")) << ran.out;
  EXPECT_TRUE(has(ran.out, "Without effect here: compression.density")) << ran.out;
  EXPECT_LE(widest(ran.out), 80U) << ran.out;
}

TEST(PredictRun, json_has_every_field) {
  const auto document = predicted({kRun, "--workers", "8,16", "--set", "scheme=oktopk,density=0.01",
                                   "--set", "link.nic.gbytes_per_s=12.5"});
  ASSERT_EQ(document["results"].size(), 2U);
  const auto& row = document["results"][0];
  EXPECT_EQ(row["workers"], 8);
  EXPECT_EQ(row["scheme"], "oktopk");
  for (const auto* key : {"step_us", "low_us", "high_us", "compute_us", "communication_us",
                          "exposed_us", "efficiency", "bytes_per_worker", "messages", "share",
                          "run_s", "best_scheme", "schemes", "no_effect"})
    EXPECT_TRUE(row.contains(key)) << key;
  EXPECT_EQ(row["schemes"].size(), 8U);
  EXPECT_EQ(document["run"]["link.gbytes_per_s"], 12.5);
  EXPECT_EQ(document["objections"].size(), 3U);
}

// Four recommendations were made for this run; each is one --set.
TEST(PredictRun, recommendations_are_answered) {
  const auto row = [](const std::string& setting) {
    return predicted({kRun, "--set", setting})["results"][0];
  };
  const double dense_us = 7750;  // of a synchronisation at 8 workers
  const auto wider = row("workers=32");
  EXPECT_EQ(wider["workers"], 32);
  EXPECT_GT(wider["efficiency"], 0.996);
  EXPECT_NEAR(wider["communication_us"].get<double>(), 1.109 * dense_us, 20);
  // One bucket is ready when the backward pass is over: overlap hides nothing.
  EXPECT_NEAR(row("overlap=1")["exposed_us"], row("overlap=0")["exposed_us"], 1e-6);
  const double at_two = row("scheme=oktopk,density=0.02")["exposed_us"];
  const double at_one = row("scheme=oktopk,density=0.01")["exposed_us"];
  EXPECT_LT(at_one, at_two);
  EXPECT_GT(at_one, at_two / 2);  // messages do not get fewer
  EXPECT_GT(row("batch=8")["efficiency"], row("batch=4")["efficiency"]);
}

TEST(PredictRun, a_recorded_run_is_what_it_measured) {
  const auto document = predicted({recorded(), "--net", "alpha=5us,bw=1GB/s", "--workers", "2,8"});
  const auto& run = document["run"];
  EXPECT_EQ(run["scheme"], "oktopk");
  EXPECT_EQ(run["compression.density"], 0.05);
  EXPECT_EQ(run["gradient_bytes"], 4000000);
  EXPECT_EQ(run["buckets"], 3);
  EXPECT_NEAR(run["step.forward_ms"].get<double>() + run["step.backward_ms"].get<double>(), 6.2,
              1e-9);
  EXPECT_GT(run["step.spread"], 0.01);
  EXPECT_EQ(document["measured"]["step_us"], 9000);
  EXPECT_EQ(document["measured"]["steps"], 30);
  const auto text = sinew({"predict", recorded(), "--net", "alpha=5us,bw=1GB/s"});
  EXPECT_TRUE(has(text.out, "Measured at 2 workers, medians of 30 steps: step 9.00 ms"))
      << text.out;
}

TEST(PredictRun, other_tools_workloads_are_predicted) {
  const auto goal = fs::path(testing::TempDir()) / "predict_run.goal";
  std::ofstream(goal) << sinew({"draw", "allreduce", "--algo", "ring", "-p", "4", "--format",
                                "goal", "--bytes", "4096"})
                             .out;
  const auto outcome = predicted({goal, "--net", "alpha=5us,bw=1GB/s"});
  EXPECT_EQ(outcome["messages"], 24);
  const auto trace = fs::path(testing::TempDir()) / "predict_run_et.json";
  std::ofstream(trace) << R"([{"id": 1, "type": "COMP_NODE", "durationMicros": "1000"},
    {"id": 2, "type": "COMM_COLL_NODE", "dataDeps": ["1"], "attr": [
    {"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "1000000"}]}])";
  const auto times = predicted({trace, "--net", "alpha=0us,bw=1GB/s", "--workers", "2"});
  EXPECT_NEAR(times["results"][0]["step_us"].get<double>(), 2000, 1e-6);
}

TEST(PredictRun, mistakes_are_one_line) {
  expect_error({"predict", kRun, "--set", "dens=1"}, 2, "did you mean 'density'");
  expect_error({"predict", kRun, "--pattern", "fsdp"}, 2, "unknown pattern 'fsdp'");
  expect_error({"predict", "/nowhere/run.toml"}, 1, "cannot read");
  const auto folder = fs::path(testing::TempDir()) / "predict_no_run";
  fs::create_directories(folder);
  expect_error({"predict", folder}, 2, "it has no run.json");
  expect_error({"predict", recorded()}, 2, "over what network?");
}

}  // namespace
}  // namespace sinew::test
