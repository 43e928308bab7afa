// Topologies as text: what is read, written again, changed by a setting, and refused with its line.
#include <gtest/gtest.h>

#include <sinew/error.hpp>
#include "model/network_file.hpp"
#include "model/predict.hpp"

namespace sinew {
namespace {

constexpr std::string_view kFile = R"(format = "sinew-net"
version = 1
name = "two racks"
placement = "round_robin"

[link]
one_way = [ { alpha_us = 1, gbytes_per_s = 50 } ]

[link.nic]
alpha_us = 2
gbytes_per_s = 25
capacity_gbytes_per_s = 20

[link.wan]
one_way = [ { alpha_us = 1000, gbytes_per_s = 0.125 } ]
shared = true

[[level]]
name = "node"
size = 4

[[level]]
name = "rack"
size = 16
link = "nic"
shared = "member"
links = 2

[[rank]]
ranks = "0..3,7"
speed = 0.5
delay_us = 20
gbytes_per_s = 5

[[path]]
from = "0..3"
to = "8"
links = ["nic", "wan"]
both_ways = false

[cores]
per_host = 8
progress = "spin"
switch_us = 1.5
tick_ms = 10

[noise]
kind = "pareto"
deviation_percent = 10
seed = 42

[stragglers]
share_percent = 1
speed = 0.25
delay_us = 3
seed = 7
)";

TEST(TopologyFile, every_key_arrives) {
  const auto network = parse_network(kFile, "net.toml");
  const auto& topology = network.topology;
  ASSERT_EQ(topology.links.size(), 2U);
  EXPECT_EQ(topology.links[0].name, "nic");
  EXPECT_EQ(topology.links[0].one_way, Curve(2e6, 40));
  EXPECT_EQ(topology.links[0].full_byte_ps(), 50);
  EXPECT_TRUE(topology.links[1].shared);
  EXPECT_EQ(topology.links[1].full_byte_ps(), 8000);
  ASSERT_EQ(topology.levels.size(), 2U);
  EXPECT_EQ(topology.levels[1].sharing, Sharing::member);
  EXPECT_EQ(topology.levels[1].links, 2);
  EXPECT_EQ(topology.room(), 64);
  EXPECT_TRUE(topology.ranks[0].ranks.contains(7));
  EXPECT_FALSE(topology.ranks[0].ranks.contains(4));
  EXPECT_EQ(topology.ranks[0].delay_ps, 20e6);
  EXPECT_EQ(topology.paths[0].links, (std::vector{0, 1}));
  EXPECT_EQ(topology.placement, RankOrder::round_robin);
  EXPECT_EQ(network.cores.progress, Cores::Progress::spin);
  EXPECT_EQ(network.cores.tick_ps, 1e10);
  EXPECT_EQ(network.noise.kind, Noise::Kind::pareto);
  EXPECT_EQ(network.noise.deviation, 0.1);
  EXPECT_EQ(network.stragglers.speed, 0.25);
}

TEST(TopologyFile, what_is_written_is_read_again) {
  const auto network = parse_network(kFile, "net.toml");
  EXPECT_EQ(parse_network(to_toml(network), "again"), network);
}

TEST(TopologyFile, settings_change_single_values) {
  const std::vector<std::string> settings{"link.nic.gbytes_per_s=12.5", "level.rack.size=2",
                                          "level.rack.shared=level", "noise.seed=1"};
  const auto network = parse_network(kFile, "net.toml", settings);
  EXPECT_EQ(network.topology.links[0].one_way, Curve(2e6, 80));
  EXPECT_EQ(network.topology.levels[1].size, 2);
  EXPECT_EQ(network.topology.levels[1].sharing, Sharing::level);
  EXPECT_EQ(network.noise.seed, 1U);
  for (const std::string wrong : {"link.nic.gbytes_per_s", "lnk.nic.gbytes_per_s=3",
                                  "level.room.size=3", "link.nic.gbytes_per_s=0", "=3"})
    EXPECT_THROW(parse_network(kFile, "net.toml", std::vector{wrong}), Error) << wrong;
}

std::string complaint(std::string_view part, std::string_view with) {
  std::string text(kFile);
  const auto at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  text.replace(at, part.size(), with);
  try {
    parse_network(text, "net.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  return "taken";
}

TEST(TopologyFile, mistakes_are_named_with_their_line_and_what_is_allowed) {
  const auto refused = [](std::string_view part, std::string_view with, std::string_view words) {
    const auto said = complaint(part, with);
    EXPECT_NE(said.find(words), std::string::npos) << with << ": " << said;
  };
  refused("gbytes_per_s = 25", "gbytes_per_s = 0",
          "net.toml:11: gbytes_per_s = 0 is impossible: more than 0 is");
  refused("gbytes_per_s = 25", "gbytes_per_s = -3",
          "net.toml:11: gbytes_per_s = -3 is impossible: more than 0 is");
  refused("alpha_us = 2", "alpha_us = -2",
          "net.toml:10: alpha_us = -2 is impossible: 0 or more is");
  refused("alpha_us = 2", "alpha = 2", "net.toml:10: alpha has no unit: write alpha_us");
  refused("gbytes_per_s = 25", "gbytes = 25",
          "net.toml:11: gbytes has no unit: write gbytes_per_s");
  refused("delay_us = 20", "delay = 20", "net.toml:32: delay has no unit: write delay_us");
  refused("speed = 0.5", "speed = 0", "net.toml:31: speed = 0 is impossible");
  refused("link = \"nic\"", "link = \"nik\"",
          "net.toml:25: unknown link 'nik'; did you mean 'nic'?");
  refused("shared = \"member\"", "shared = \"node\"", "net.toml:26: unknown shared 'node'");
  refused("size = 4", "size = 2.5", "net.toml:20: size = 2.5 is impossible: a whole number");
  refused("size = 4", "size = 0", "net.toml:20: size = 0 is impossible: 1 or more is");
  refused("size = 4\n", "", "the level 'node' lacks its size; only the last level may");
  refused("links = 2", "links = 0", "net.toml:27: links = 0 is impossible");
  refused("ranks = \"0..3,7\"", "ranks = \"3..0\"", "net.toml:30: '3..0' is an empty range");
  refused("ranks = \"0..3,7\"", "ranks = \"all\"", "'all' in 'all' is not a rank");
  refused("links = [\"nic\", \"wan\"]", "links = []", "a path has 1 to 12 links");
  refused("deviation_percent = 10", "deviation_percent = 300", "at most 100 is");
  refused("share_percent = 1", "share_percent = 101", "at most 100 is");
  refused("kind = \"pareto\"", "kind = \"white\"", "unknown kind 'white'");
  refused("progress = \"spin\"", "progress = \"span\"", "did you mean 'spin'?");
  refused("[[path]]", "[path]", "write [[path]]");
  refused("placement = \"round_robin\"", "placement = \"robin\"", "unknown placement 'robin'");
  refused("one_way = [ { alpha_us = 1, gbytes_per_s = 50 } ]", "",
          "[link] lacks one_way: what a message costs where no level names a link");
}

TEST(TopologyFile, more_ranks_than_the_levels_hold_are_refused_with_the_line) {
  const auto network = parse_network(kFile, "net.toml");
  try {
    predict(find_algorithm(Collective::allreduce, "ring"), {Collective::allreduce, 65, 8}, network);
    FAIL() << "65 ranks fit into 64 places";
  } catch (const Error& error) {
    EXPECT_NE(
        std::string(error.what())
            .find("net.toml:22: the levels hold 4 x 16 = 64 ranks, but there are 65; make 'rack' "
                  "larger, or leave its size out"),
        std::string::npos)
        << error.what();
  }
}

TEST(TopologyFile, parts_that_nothing_passes_are_named_as_without_effect) {
  const auto network = parse_network(kFile, "net.toml");
  const auto answer = predict(find_algorithm(Collective::allreduce, "recursive_doubling"),
                              {Collective::allreduce, 4, 1000}, network);
  const auto named = [&](std::string_view input) {
    return std::find(answer.no_effect.begin(), answer.no_effect.end(), input) !=
           answer.no_effect.end();
  };
  EXPECT_TRUE(named("link.nic"));
  EXPECT_TRUE(named("link.wan"));
}

}  // namespace
}  // namespace sinew
