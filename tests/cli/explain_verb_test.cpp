// `sinew explain` from outside: of a prediction, and of what ranks recorded.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.hpp"

namespace sinew::test {
namespace {

using Json = nlohmann::json;
const std::string kNet = "alpha=5us,bw=25GB/s,gamma=10GB/s";

void expect_80_columns(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(ExplainVerb, says_who_waits_for_whom_and_draws_it) {
  const auto ran = sinew(
      {"explain", "allreduce", "--algo", "binomial", "-p", "8", "--bytes", "1M", "--net", kNet});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "allreduce binomial of 1 MiB, 8 ranks")) << ran.out;
  EXPECT_TRUE(has(ran.out, "rank 0 combines 1 MiB")) << ran.out;
  EXPECT_TRUE(has(ran.out, "Who waits for whom")) << ran.out;
  EXPECT_TRUE(has(ran.out, "waits for rank")) << ran.out;
  EXPECT_TRUE(has(ran.out, "capitals: on the longest chain")) << ran.out;
  expect_80_columns(ran.out);
}

TEST(ExplainVerb, json_and_svg_hold_the_chain) {
  const auto ran = sinew({"explain", "broadcast", "--algo", "binomial", "-p", "8", "--bytes", "8",
                          "--net", kNet, "--json"});
  const auto chain = Json::parse(ran.out);
  EXPECT_EQ(chain["kind"], "predicted");
  EXPECT_EQ(chain["steps"].size(), 3U);
  EXPECT_EQ(chain["steps"][0]["rank"], 0);
  EXPECT_NEAR(chain["time_us"].get<double>(), 15.00096, 1e-6);
  const auto svg = sinew({"explain", "broadcast", "-p", "8", "--net", kNet, "--format", "svg"});
  EXPECT_TRUE(svg.out.starts_with("<svg")) << svg.err;
}

// Real ranks, their traces, and the chain of their longest call.
TEST(ExplainVerb, explains_what_ranks_recorded) {
  const std::string folder = testing::TempDir() + "explain_recorded";
  std::filesystem::remove_all(folder);
  ::setenv("SINEW_TRACE", folder.c_str(), 1);
  const auto ranks = sinew({"launch", "-n", "3", "--", SINEW_RANK_PROGRAM});
  ::unsetenv("SINEW_TRACE");
  ASSERT_EQ(ranks.status, 0) << ranks.err;
  const auto ran = sinew({"explain", folder, "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto chain = Json::parse(ran.out);
  EXPECT_EQ(chain["kind"], "recorded");
  EXPECT_EQ(chain["collective"], "allreduce");
  EXPECT_EQ(chain["ranks"], 3);
  EXPECT_GE(chain["steps"].size(), 1U);
  double before = 0;
  for (const auto& step : chain["steps"]) {
    EXPECT_GE(step["end_us"].get<double>(), before);
    before = step["end_us"];
  }
  const auto text = sinew({"explain", folder});
  EXPECT_TRUE(has(text.out, "measured")) << text.out;
  expect_80_columns(text.out);
  expect_error({"explain", folder, "--call", "99999999"}, 2, "has no collective 99999999");
  std::filesystem::remove_all(folder);
}

TEST(ExplainVerb, mistakes_are_one_line) {
  expect_error({"explain", "allreduce"}, 2, "on which network?");
  expect_error({"explain", "allredcue", "--net", kNet}, 2, "did you mean 'allreduce'?");
  expect_error({"explain", "allreduce", "--net", kNet, "--algo", "flat"}, 2,
               "does not fit 8 ranks");
  expect_error({"explain", "allreduce", "--net", kNet, "--format", "png"}, 2, "unknown format");
}

}  // namespace
}  // namespace sinew::test
