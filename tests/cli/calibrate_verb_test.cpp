// `sinew calibrate` from outside: it measures real ranks, so only the form of its answers is sure.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/network_file.hpp"
#include "support/program.hpp"

namespace sinew::test {
namespace {

using Json = nlohmann::json;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// One round on a machine that may be busy: a model comes out, and predictions come out of it.
TEST(CalibrateVerb, writes_a_model_that_predict_reads) {
  for (const std::string transport : {"shm", "tcp"}) {
    const std::string file = testing::TempDir() + "calibrated_" + transport + ".toml";
    const auto ran = sinew({"calibrate", "-p", "2", "--rounds", "1", "--most", "2K", "--force",
                            "--json", "--transport", transport, "-o", file});
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto about = Json::parse(ran.out);
    EXPECT_EQ(about["ranks"], 2);
    EXPECT_EQ(about["transport"], transport);
    EXPECT_GE(about["noise_factor"].get<double>(), 1);
    EXPECT_LE(about["low_factor"].get<double>(), 1);
    EXPECT_GE(about["high_factor"].get<double>(), 1);
    const auto network = parse_network(text_of(file), file);
    EXPECT_EQ(network.board.has_value(), transport == "shm");
    EXPECT_EQ(network.provenance.ranks, 2);
    EXPECT_FALSE(network.provenance.host.empty());
    EXPECT_GT(network.one_way.at(1e6).beta, 0);

    const auto predicted =
        sinew({"predict", "allreduce", "-p", "2", "--bytes", "64K", "--net", file});
    EXPECT_EQ(predicted.status, 0) << predicted.err;
    EXPECT_TRUE(has(predicted.out, "expected")) << predicted.out;
    EXPECT_TRUE(has(predicted.out, "measured on")) << predicted.out;
    EXPECT_EQ(has(predicted.out, "  direct "), transport == "shm") << predicted.out;
    std::filesystem::remove(file);
  }
}

Json check_of(const std::string& ranks, const std::string& transport) {
  const std::string file = testing::TempDir() + "calibrated_check.toml";
  const std::vector<std::string> common{"--transport", transport, "-p", ranks, "--most", "64K"};
  const auto with = [&](std::vector<std::string> words, std::vector<std::string> more) {
    words.insert(words.end(), common.begin(), common.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const auto made = sinew(with({"calibrate"}, {"--rounds", "5", "--force", "-o", file}));
  EXPECT_EQ(made.status, 0) << made.err;
  const auto checked =
      sinew(with({"calibrate"}, {"--check", file, "--rounds", "3", "--force", "--json"}));
  EXPECT_EQ(checked.status, 0) << checked.err;
  std::filesystem::remove(file);
  return Json::parse(checked.out);
}

// Our own schedules at sizes that no fit has seen, in ranks of their own.
TEST(CalibrateVerb, predictions_hold_on_a_quiet_machine) {
  if (std::getenv("SINEW_FULL") == nullptr) GTEST_SKIP() << "times something: SINEW_FULL=1 does";
  double load = 0;
  const auto cores = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (::getloadavg(&load, 1) != 1 || load > cores || cores < 2)
    GTEST_SKIP() << "load average " << load << " on " << cores
                 << " cores: times would be those of others";
  const auto two = check_of("2", "shm");
  EXPECT_GT(two["cells"].size(), 50U);
  EXPECT_LE(two["median_error"].get<double>(), 0.20) << two.dump(1);
  EXPECT_LE(two["largest_error"].get<double>(), 0.75) << two.dump(1);
  const auto crowded = check_of(std::to_string(static_cast<int>(2 * cores)), "shm");
  for (const auto& cell : crowded["cells"]) {
    const double ratio = cell["measured_us"].get<double>() / cell["predicted_us"].get<double>();
    EXPECT_LT(std::max(ratio, 1 / ratio), 3) << cell.dump();
  }
}

TEST(CalibrateVerb, a_check_needs_the_ranks_and_the_transport_of_the_model) {
  const std::string file = testing::TempDir() + "calibrated_other.toml";
  const auto made =
      sinew({"calibrate", "-p", "2", "--rounds", "1", "--most", "2K", "--force", "-o", file});
  ASSERT_EQ(made.status, 0) << made.err;
  expect_error({"calibrate", "--check", file, "--transport", "tcp", "--force"}, 2,
               "this model is of 2 ranks over shm; check it with -p 2 --transport shm");
  expect_error({"predict", "allreduce", "--net", file, "--transport", "tcp"}, 2,
               "this network was measured over shm, not tcp");
  std::filesystem::remove(file);
}

TEST(CalibrateVerb, mistakes_are_one_line) {
  expect_error({"calibrate", "--transport", "tpc"}, 2, "did you mean 'tcp'?");
  expect_error({"calibrate", "--most", "12"}, 2, "is not between 1K and 1G");
  expect_error({"calibrate", "-p", "1"}, 2, "--ranks");
  expect_error({"calibrate", "--frce"}, 2, "did you mean '--force'?");
}

// Two programs that spin are others, whatever the machine does besides.
TEST(CalibrateVerb, a_busy_machine_is_refused_with_the_reason) {
  const Program one({"sh", "-c", "while :; do :; done"}), two({"sh", "-c", "while :; do :; done"});
  const std::string file = testing::TempDir() + "calibrated_busy.toml";
  expect_error({"calibrate", "-o", file}, 1, "cores busy");
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace sinew::test
