// Network models as text: what is read, what is written, and what a mistake is told.
#include "model/network_file.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include <sinew/error.hpp>

namespace sinew {
namespace {

constexpr std::string_view kFile = R"(format = "sinew-net"
version = 1
name = "two ranks of a host"

[link]
eager_bytes = 4096
one_way = [
  { max_bytes = 4096, alpha_us = 0.4, gbytes_per_s = 2.5 },
  { alpha_us = 3.2, gbytes_per_s = 20 },
]
exchange = [ { alpha_us = 0.5, gbytes_per_s = 10 } ]

[compute]
call_us = 0.25
reduce = [ { gbytes_per_s = 25 } ]

[board]
wait_us = 0.125
slot_bytes = 524288
publish = [ { gbytes_per_s = 12.5 } ]
gather = [ { gbytes_per_s = 10 } ]

[error]
low_factor = 0.75
high_factor = 1.5

[provenance]
host = "here"
ranks = 2
schedule_error_percent = 12.5
)";

TEST(NetworkFile, every_key_arrives_in_picoseconds) {
  const auto network = parse_network(kFile, "net.toml");
  EXPECT_EQ(network.name, "two ranks of a host");
  EXPECT_EQ(network.eager_bytes, 4096);
  EXPECT_EQ(network.one_way.segments(),
            (std::vector<CurvePart>{{4096, 0.4e6, 400}, {INFINITY, 3.2e6, 50}}));
  EXPECT_EQ(network.exchange, Curve(0.5e6, 100));
  EXPECT_EQ(network.reduce, Curve(0, 40));
  EXPECT_TRUE(network.copy.is_free());
  EXPECT_EQ(network.call_ps, 0.25e6);
  ASSERT_TRUE(network.board);
  EXPECT_EQ(network.board->wait_ps, 0.125e6);
  EXPECT_EQ(network.board->slot_bytes, 524288);
  EXPECT_EQ(network.board->publish, Curve(0, 80));
  EXPECT_EQ(network.error, (ErrorBar{0.75, 1.5}));
  EXPECT_EQ(network.provenance.ranks, 2);
  EXPECT_EQ(network.provenance.schedule_error, 0.125);
}

TEST(NetworkFile, what_is_written_is_read_again) {
  auto network = parse_network(kFile, "net.toml");
  network.name = "quotes \" and \\ and\nlines";
  network.provenance.made_by = "sinew";
  EXPECT_EQ(parse_network(to_toml(network), "again"), network);
  const auto line = parse_network_line("alpha=5us,bw=25GB/s");
  EXPECT_EQ(parse_network(to_toml(line), "again"), line);
}

void expect_refusal(std::string text, std::string_view part, std::string_view with,
                    std::string_view words) {
  const auto at = text.find(part);
  ASSERT_NE(at, std::string::npos) << part;
  text.replace(at, part.size(), with);
  try {
    parse_network(text, "net.toml");
    FAIL() << with << " was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(NetworkFile, mistakes_are_named_with_their_line) {
  const std::string good(kFile);
  const auto refuse = [&](std::string_view part, std::string_view with, std::string_view words) {
    expect_refusal(good, part, with, words);
  };
  refuse("gbytes_per_s = 2.5", "gbytes_per_s = 0",
         "net.toml:8: gbytes_per_s = 0 is impossible: more than 0 is");
  refuse("alpha_us = 0.4", "alpha_us = -1", "net.toml:8: alpha_us = -1 is impossible");
  refuse("alpha_us = 0.4", "alpha = 0.4", "net.toml:8: alpha has no unit: write alpha_us");
  refuse("gbytes_per_s = 2.5", "gbytes_per_s = \"fast\"", "gbytes_per_s is not a number");
  refuse("gbytes_per_s = 2.5", "gbytes_per_s = nan", "gbytes_per_s is not a number");
  refuse(", gbytes_per_s = 2.5", "", "an entry of one_way lacks gbytes_per_s");
  refuse("max_bytes = 4096, ", "", "lacks max_bytes; only the last may");
  refuse("{ alpha_us = 3.2", "{ max_bytes = 9, alpha_us = 3.2", "the last entry has no max_bytes");
  refuse("version = 1", "version = 2", "this is version 2");
  refuse("sinew-net", "other", "not a network model");
  refuse("[link]", "[lnk]", "there is no [link]");
  refuse("[compute]", "[compte]", "did you mean 'compute'?");
  refuse("call_us = 0.25", "call_us = ", "net.toml:14:");
  refuse("high_factor = 1.5", "high_factor = 0.5", "high_factor = 0.5 is impossible");
  refuse("reduce = [ { gbytes_per_s = 25 } ]", "reduce = 25", "reduce is a list");
}

TEST(NetworkLine, two_numbers_make_a_network) {
  const auto network = parse_network_line("alpha=5us,bw=25GB/s,gamma=10GB/s,eager=4K");
  EXPECT_EQ(network.one_way, Curve(5e6, 40));
  EXPECT_EQ(network.reduce, Curve(0, 100));
  EXPECT_EQ(network.eager_bytes, 4096);
  EXPECT_TRUE(network.exchange.is_free());
  EXPECT_LT(parse_network_line("alpha=5us,bw=25GB/s").eager_bytes, 0);
  for (const auto wrong : {"", "alpha=5us", "bw=1GB/s", "alpha=5us,bw=1GB/s,bw=2GB/s",
                           "alpha=5us,bw", "alpha=5us,bw=1GB/s,beta=3", "alpha=5,bw=1GB/s"})
    EXPECT_THROW(parse_network_line(wrong), Error) << wrong;
}

}  // namespace
}  // namespace sinew
