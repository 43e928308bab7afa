// `sinew predict` from outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.hpp"

namespace sinew::test {
namespace {

using Json = nlohmann::json;
const std::string kNet = "alpha=5us,bw=25GB/s";

Json predicted(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "predict");
  arguments.emplace_back("--json");
  const auto ran = sinew(arguments);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return Json::parse(ran.out)["results"];
}

TEST(PredictVerb, the_table_names_the_best_of_each_count) {
  const auto ran =
      sinew({"predict", "allreduce", "-p", "8..32", "--bytes", "110278272", "--net", kNet});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "allreduce of 110.28 MB, 16 ranks")) << ran.out;
  EXPECT_TRUE(has(ran.out, "halving_doubling  7.75 ms    1.000")) << ran.out;
  EXPECT_TRUE(has(ran.out, "halving_doubling  8.60 ms    1.109")) << ran.out;
  EXPECT_TRUE(has(ran.out, "Modelled, on 5 us and 25 GB/s a message")) << ran.out;
}

// The widest things there are: long names, error bars, hours, billions of messages.
TEST(PredictVerb, tables_fit_80_columns) {
  const std::string file = testing::TempDir() + "predict_wide.toml";
  std::ofstream(file) << R"(format = "sinew-net"
version = 1
[link]
one_way = [ { alpha_us = 900, gbytes_per_s = 0.0125 } ]
[compute]
reduce = [ { gbytes_per_s = 7 } ]
[noise]
deviation_percent = 30
[error]
low_factor = 0.123
high_factor = 7.77
)";
  for (const auto& net : {kNet, file})
    for (const std::string bytes : {"8", "110278272"})
      for (const std::string collective : {"allreduce", "alltoall", "broadcast"}) {
        const auto ran = sinew({"predict", collective, "-p", "4..32", "--bytes", bytes, "--net",
                                net, "--samples", "3"});
        EXPECT_EQ(ran.status, 0) << ran.err;
        std::istringstream lines(ran.out);
        for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
      }
  std::filesystem::remove(file);
}

TEST(PredictVerb, levels_bring_shared_links_and_their_algorithms) {
  const std::string file = testing::TempDir() + "predict_levels.toml";
  std::ofstream(file) << R"(format = "sinew-net"
version = 1
[link.near]
gbytes_per_s = 1e9
[link.nic]
gbytes_per_s = 25
[[level]]
name = "node"
size = 4
link = "near"
[[level]]
name = "cluster"
size = 8
link = "nic"
shared = "member"
)";
  const auto ms = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"allreduce", "--algo", "halving_doubling", "-p", "8", "--bytes",
                               "110278272", "--net", file});
    return predicted(more)[0]["time_us"].get<double>() / 1e3;
  };
  EXPECT_NEAR(ms({}), 17.6, 0.05);
  EXPECT_NEAR(ms({"--set", "placement=round_robin"}), 4.4, 0.05);
  EXPECT_NEAR(ms({"--set", "link.nic.gbytes_per_s=12.5"}), 35.3, 0.05);
  EXPECT_NEAR(ms({"--set", "level.cluster.links=4"}), 4.4, 0.05);
  const auto all = predicted({"allreduce", "-p", "8", "--net", file});
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const Json& one) { return one["algorithm"] == "grid"; }),
            1);
  expect_error({"predict", "allreduce", "-p", "64", "--net", file}, 2,
               file + ":11: the levels hold 4 x 8 = 32 ranks, but there are 64");
  expect_error({"predict", "allreduce", "--nodes", "2x4", "--net", file}, 2,
               "the network has levels");
  expect_error({"predict", "allreduce", "-p", "8", "--net", file, "--set", "level.clster.size=3"},
               2, "there is no 'level' in the network to set");
  expect_error({"predict", "allreduce", "--net", file, "--transport", "tcp"}, 2,
               "nothing of this network was measured; `sinew calibrate --transport tcp");
  std::filesystem::remove(file);
}

TEST(PredictVerb, the_same_seed_gives_the_same_bytes) {
  const std::string file = testing::TempDir() + "predict_noise.toml";
  std::ofstream(file) << "format = \"sinew-net\"\nversion = 1\n[link]\n"
                         "one_way = [ { alpha_us = 5, gbytes_per_s = 10 } ]\n"
                         "[noise]\ndeviation_percent = 20\nseed = 3\n";
  const auto once = [&](const std::string& seed) {
    return sinew({"predict", "allreduce", "-p", "8", "--net", file, "--json", "--samples", "5",
                  "--set", "noise.seed=" + seed})
        .out;
  };
  EXPECT_EQ(once("3"), once("3"));
  EXPECT_NE(once("3"), once("4"));
  std::filesystem::remove(file);
}

TEST(PredictVerb, crowded_hosts_get_a_warning_and_a_wide_bar) {
  const std::string file = testing::TempDir() + "predict_cores.toml";
  std::ofstream(file) << "format = \"sinew-net\"\nversion = 1\n[link]\n"
                         "one_way = [ { alpha_us = 0.4, gbytes_per_s = 10 } ]\n"
                         "[cores]\nper_host = 2\nprogress = \"spin\"\n";
  const auto ran = sinew({"predict", "allreduce", "--algo", "ring", "-p", "2,8", "--bytes", "8",
                          "--net", file, "--json"});
  EXPECT_TRUE(has(ran.err, "8 ranks spin on 2 cores")) << ran.err;
  const auto document = Json::parse(ran.out);
  EXPECT_EQ(document["warnings"].size(), 1U);
  const auto& eight = document["results"][1];
  EXPECT_NEAR(eight["high_us"].get<double>() / eight["low_us"].get<double>(), 100, 1);
  EXPECT_EQ(document["results"][0]["low_us"], document["results"][0]["high_us"]);
  std::filesystem::remove(file);
}

TEST(PredictVerb, json_has_every_field) {
  const auto results = predicted({"allreduce", "--algo", "ring", "-p", "4,6", "--bytes", "1200",
                                  "--net", kNet + ",gamma=1GB/s,eager=64"});
  ASSERT_EQ(results.size(), 2U);
  const auto& four = results[0];
  EXPECT_EQ(four["collective"], "allreduce");
  EXPECT_EQ(four["algorithm"], "ring");
  EXPECT_EQ(four["ranks"], 4);
  EXPECT_EQ(four["bytes"], 1200);
  EXPECT_NEAR(four["time_us"].get<double>(), 6 * (5 + 0.012) + 3 * 0.3, 1e-9);
  EXPECT_EQ(four["low_us"], four["time_us"]);
  EXPECT_EQ(four["bytes_per_rank"], 1800);
  EXPECT_EQ(four["messages"], 24);
  EXPECT_NEAR(four["share"]["alpha"].get<double>(), 30 / 30.972, 1e-6);
  EXPECT_NEAR(four["ratio_to_bound"].get<double>(), 3.0972, 1e-4);
  EXPECT_EQ(four["no_effect"], Json::array({"eager"}));
  EXPECT_EQ(results[1]["ranks"], 6);
  std::vector<std::string> keys;
  for (const auto& [key, value] : four.items()) keys.push_back(key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"algorithm", "bytes", "bytes_per_rank", "collective",
                                      "high_us", "low_us", "lower_bound_us", "messages",
                                      "no_effect", "ranks", "ratio_to_bound", "share", "time_us"}));
}

TEST(PredictVerb, ranges_double_and_keep_their_end) {
  std::vector<int> ranks;
  for (const auto& result :
       predicted({"barrier", "--algo", "dissemination", "-p", "3..20,4", "--net", kNet}))
    ranks.push_back(result["ranks"]);
  EXPECT_EQ(ranks, (std::vector{3, 4, 6, 12, 20}));
}

TEST(PredictVerb, a_million_ranks_are_one_when_all_are_alike) {
  const auto results = predicted({"allreduce", "--algo", "recursive_doubling", "-p", "1048576",
                                  "--bytes", "8", "--net", kNet});
  EXPECT_NEAR(results[0]["time_us"].get<double>(), 20 * 5.00032, 1e-6);
  EXPECT_EQ(results[0]["messages"], 20 * 1048576);
}

TEST(PredictVerb, node_maps_bring_algorithms_of_levels) {
  const auto results = predicted({"allreduce", "--nodes", "4x2", "--net", kNet});
  const auto is_grid = [](const Json& result) { return result["algorithm"] == "grid"; };
  EXPECT_EQ(std::count_if(results.begin(), results.end(), is_grid), 1);
  EXPECT_EQ(results[0]["ranks"], 8);
}

TEST(PredictVerb, mistakes_are_one_line) {
  const auto refused = [](std::vector<std::string> arguments, const std::string& part) {
    arguments.insert(arguments.begin(), {"predict", "allreduce"});
    expect_error(arguments, 2, part);
  };
  refused({"-p", "8"}, "--net");
  refused({"--net", "alpha=5us,bw=0GB/s"}, "'0GB/s' is not a rate");
  refused({"--net", "alpha=5us,bandwidth=3GB/s"}, "unknown part of a network 'bandwidth'");
  refused({"--net", kNet, "--algo", "flat"}, "fits 8 ranks without shared memory");
  refused({"--net", kNet, "-p", "9..3"}, "empty range");
  refused({"--net", kNet, "-p", "8", "--nodes", "2x3"}, "holds 6 ranks, but -p says 8");
  refused({"--net", kNet, "--root", "8"}, "root 8 is not a rank of 8");
  const std::string file = testing::TempDir() + "predict_verb_net.toml";
  std::ofstream(file)
      << "format = \"sinew-net\"\nversion = 1\n[link]\none_way = [ { alpha_us = 1 } ]\n";
  refused({"--net", file}, file + ":4: an entry of one_way lacks gbytes_per_s");
  expect_error({"predict", "allreduce", "--net", "/nowhere.toml"}, 1, "cannot read");
}

}  // namespace
}  // namespace sinew::test
