// Descriptions of training runs: what they may say, and how single inputs are changed.
#include "model/training_run.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include <sinew/error.hpp>

namespace sinew {
namespace {

const std::string kHead = "format = \"sinew-run\"\nversion = 1\n";
const std::string kSmall = kHead +
                           "[step]\nworkers = 4\nbatch = 8\nparameters = 1000\nforward_ms = 1\n"
                           "backward_ms = 2\n[link.nic]\nalpha_us = 5\ngbytes_per_s = 25\n";

std::string refusal(const std::string& text) {
  try {
    parse_run(text, "run.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TrainingRun, a_description_is_read) {
  const auto run = parse_run(kSmall, "run.toml");
  EXPECT_EQ(run.workers, 4);
  EXPECT_EQ(run.gradient_bytes(), 4000);
  EXPECT_EQ(run.compute_ms(), 3);
  EXPECT_EQ(run.link_name, "nic");
  const auto network = network_of(run, nullptr);
  EXPECT_EQ(network.one_way, Curve(5e6, 40));
}

TEST(TrainingRun, buckets_and_statements_are_read) {
  const auto run = parse_run(
      kHead +
          "[[bucket]]\nbytes = 10\nready_ms = 1\n[[bucket]]\nbytes = 30\n[step]\noverlap = "
          "true\n[stated]\nallreduce_ms = 4.5\nscaling = \"log\"\nat_workers = [{workers = "
          "16, communication_s = 8.5}]\n",
      "run.toml");
  EXPECT_EQ(run.buckets, (std::vector<RunBucket>{{10, 1}, {30, -1}}));
  EXPECT_EQ(run.overlap, 1);
  EXPECT_EQ(run.stated.at_workers, (std::vector<std::pair<int, double>>{{16, 8.5}}));
}

TEST(TrainingRun, mistakes_name_their_line) {
  EXPECT_EQ(refusal("version = 1\n"),
            "run.toml:1: not a training run: it does not say format = \"sinew-run\"");
  EXPECT_EQ(refusal(kHead), "run.toml:1: nothing to send: say step.parameters, or [[bucket]]");
  EXPECT_EQ(refusal(kHead + "[step]\nworkers = 0\n"),
            "run.toml:4: step.workers = 0 is impossible: a whole number from 1 to 16777216 is "
            "possible");
  EXPECT_EQ(refusal(kHead + "[step]\nforward_ms = -1\n"),
            "run.toml:4: step.forward_ms is not a number of 0 or more");
  EXPECT_EQ(refusal(kHead + "[step]\nfoward_ms = 1\n"),
            "run.toml:4: unknown input of a run 'step.foward_ms'; did you mean "
            "'step.forward_ms'?");
  EXPECT_EQ(refusal(kHead + "[compression]\nscheme = \"topk\"\n"),
            "run.toml:4: unknown compression scheme 'topk'; did you mean 'topka'?");
  EXPECT_EQ(refusal(kHead + "[link.nic]\nbandwidth = 1\n"),
            "run.toml:4: there is no 'link.bandwidth': the link here is called 'nic', with "
            "alpha_us and gbytes_per_s");
  EXPECT_EQ(refusal(kSmall + "[[bucket]]\nbytes = 1\n"),
            "run.toml:1: say step.parameters or [[bucket]], not both");
}

TEST(TrainingRun, inputs_can_be_set) {
  auto run = parse_run(kSmall, "run.toml");
  EXPECT_EQ(apply_setting(run, "link.nic.gbytes_per_s=12.5"), "link.nic.gbytes_per_s");
  EXPECT_EQ(run.gbytes_per_s, 12.5);
  apply_setting(run, "density=0.5");
  EXPECT_EQ(run.density, 0.5);
  apply_setting(run, "scheme=gtopk");
  EXPECT_EQ(run.scheme, "gtopk");
  apply_setting(run, "batch=16");
  EXPECT_EQ(run.compute_ms(), 6);
  const auto refused = [&](std::string_view text) {
    try {
      apply_setting(run, text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused("density"), "'density' sets nothing: write --set density=0.01");
  EXPECT_EQ(refused("density=2"),
            "compression.density = 2 is impossible: a number from 1e-09 to 1 is possible");
  EXPECT_EQ(refused("density=1x"), "density: '1x' is not a number");
  EXPECT_EQ(refused("dens=1"), "unknown input of a run 'dens'; did you mean 'density'?");
  EXPECT_EQ(refused("link.ib.gbytes_per_s=1"),
            "there is no 'link.ib.gbytes_per_s': the link here is called 'nic', with alpha_us and "
            "gbytes_per_s");
}

TEST(TrainingRun, a_network_given_beside_keeps_what_is_not_set) {
  auto run = parse_run(kHead + "[step]\nparameters = 10\n", "run.toml");
  EXPECT_THROW(network_of(run, nullptr), Error);
  Network given;
  given.one_way = Curve({{4096, 1e6, 400}, {0, 2e6, 100}});
  apply_setting(run, "link.gbytes_per_s=2");
  const auto network = network_of(run, &given);
  EXPECT_EQ(network.one_way.at(100).alpha, 1000000);
  EXPECT_EQ(network.one_way.at(1000).beta, 500000);
  EXPECT_EQ(network.one_way.at(10000).beta, 5000000);
}

TEST(TrainingRun, shipped_descriptions_are_read) {
  for (const auto* name : {"lstm_an4", "internet"}) {
    const auto path = std::string(SINEW_SOURCE_DIR "/examples/runs/") + name + ".toml";
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(parse_run(text.str(), path).gradient_bytes(), 110278272) << name;
  }
}

}  // namespace
}  // namespace sinew
