// `sinew bench lossless` from outside. Nothing is timed.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/program.hpp"

namespace sinew::test {
namespace {

using Json = nlohmann::json;

Json lossless(std::vector<std::string> words) {
  words.insert(words.begin(), {"bench", "lossless", "--rounds", "2", "--json"});
  const auto ran = sinew(words);
  EXPECT_EQ(ran.status, 0) << ran.err;
  Json by_way;
  const auto document = Json::parse(ran.out);
  for (const auto& row : document.at("results")) by_way[row.at("way").get<std::string>()] = row;
  return by_way;
}

TEST(BenchLossless, shows_every_way_beside_none) {
  const auto ran = sinew({"bench", "lossless", "--bytes", "300K", "--rounds", "1"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_LE(widest_line(ran.out), 80U) << ran.out;
  for (const auto* const way :
       {"none", "zlib block", "lz4 frame", "lz4 block", "zstd block", "lz4 adaptive", "x none"})
    EXPECT_TRUE(has(ran.out, way)) << way;
}

TEST(BenchLossless, ratios_follow_the_data) {
  const auto gradient = lossless({"--bytes", "1M"});
  EXPECT_LT(gradient["lz4 block"]["ratio"], 1.01);  // floats have no bytes in common
  EXPECT_GT(gradient["zstd block, shuffled"]["ratio"], gradient["zstd block"]["ratio"]);
  const auto zeros = lossless({"--bytes", "1M", "--data", "zeros"});
  for (const auto* const way : {"zlib block", "lz4 frame", "lz4 block", "zstd block"})
    EXPECT_GT(zeros[way]["ratio"], 50) << way;
  const auto coarse = lossless({"--bytes", "1M", "--data", "coarse"});
  EXPECT_GT(coarse["lz4 block, shuffled"]["ratio"], 1.8);  // half of every float is zero
}

TEST(BenchLossless, adaptive_leaves_noise_alone_and_saves_on_a_slow_link) {
  const auto noise = lossless({"--bytes", "8M", "--data", "noise"});
  EXPECT_EQ(noise["lz4 adaptive"]["compressed_blocks"], 0);
  EXPECT_LT(noise["lz4 adaptive"]["tried_bytes"], 8 << 20 >> 7);
  const auto slow = lossless({"--bytes", "2M", "--data", "zeros", "--link", "0.001"});
  EXPECT_EQ(slow["zstd adaptive"]["compressed_blocks"], slow["zstd adaptive"]["blocks"]);
}

TEST(BenchLossless, takes_a_file_and_leaves_short_ones) {
  const std::string path = testing::TempDir() + "lossless_verb_test";
  std::ofstream(path) << std::string(3000, 'a');
  const auto left = lossless({"--file", path});
  EXPECT_EQ(left["lz4 block"]["compressed_blocks"], 0);
  const auto taken = lossless({"--file", path, "--min-bytes", "1K"});
  EXPECT_EQ(taken["lz4 block"]["compressed_blocks"], 1);
}

TEST(BenchLossless, refuses_what_it_does_not_know) {
  expect_error({"bench", "lossless", "--data", "gradent"}, 2, "gradient");
  expect_error({"bench", "lossless", "--file", "/nowhere/at/all"}, 1, "/nowhere/at/all");
  expect_error({"bench", "lossless", "--block", "1"}, 2, "64");
}

}  // namespace
}  // namespace sinew::test
