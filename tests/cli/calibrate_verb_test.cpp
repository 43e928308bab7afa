// `sinew calibrate` from outside: it measures real ranks, so only the form of its answers is sure.
#include <gtest/gtest.h>

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
