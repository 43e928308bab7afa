// The program from outside: help, list, draw, doctor; errors are one line and a status.
#include <gtest/gtest.h>
#include <sinew/algorithms.hpp>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.hpp"

namespace sinew::test {
namespace {

using Json = nlohmann::json;

// Sanitizer builds have no torch: it is not made for them.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kTrains = false;
#else
constexpr bool kTrains = true;
#endif

TEST(Program, alone_it_explains_itself) {
  const auto alone = sinew({}), help = sinew({"--help"});
  EXPECT_EQ(alone.status, 0);
  EXPECT_EQ(alone.out, help.out);
  for (const auto verb : {"list", "verify", "draw", "launch", "doctor"}) {
    EXPECT_TRUE(has(alone.out, std::string("\n  ") + verb)) << verb;
    const auto explained = sinew({verb, "--help"});
    EXPECT_EQ(explained.status, 0);
    EXPECT_TRUE(has(explained.out, "--json")) << verb;
  }
}

TEST(Program, helps_within_80_columns_whatever_the_verb) {
  const auto help = sinew({"--help"}).out;
  EXPECT_LE(widest_line(help), 80U) << help;
  int verbs = 0;
  for (const auto& line : lines_of(help)) {
    if (line.size() < 4 || !line.starts_with("  ") || line[2] == ' ' ||
        line.starts_with("  sinew "))
      continue;
    const auto verb = line.substr(2, line.find(' ', 2) - 2);
    if (verb == "train" && !kTrains) continue;
    const auto explained = sinew({verb, "--help"});
    EXPECT_EQ(explained.status, 0) << verb;
    EXPECT_TRUE(has(explained.out, "sinew " + verb)) << explained.out;
    EXPECT_LE(widest_line(explained.out), 80U) << explained.out;
    ++verbs;
  }
  EXPECT_GE(verbs, 7);
}

TEST(Program, says_its_version) { EXPECT_TRUE(sinew({"--version"}).out.starts_with("sinew ")); }

TEST(Program, a_mistyped_word_suggests_the_nearest) {
  expect_error({"verfy"}, 2, "did you mean 'verify'?");
  expect_error({"list", "alreduce"}, 2, "did you mean 'allreduce'?");
  expect_error({"draw", "allreduce", "--algo", "rign", "-p", "4"}, 2, "did you mean 'ring'?");
  expect_error({"draw", "allreduce", "--algo", "ring", "-p", "4", "--format", "svgg"}, 2, "'svg'");
  expect_error({"list", "--nonsense"}, 2, "unknown option '--nonsense'");
  expect_error({"draw", "--algorithm", "ring"}, 2, "did you mean '--algo'?");
  expect_error({"launch", "-n", "2", "--bnd", "core", "true"}, 2, "did you mean '--bind'?");
}

TEST(Program, full_standard_output_is_a_failure) {
  const auto ran = run({"sh", "-c", SINEW_PROGRAM " list > /dev/full"});
  EXPECT_EQ(ran.status, 1);
}

TEST(List, names_every_algorithm_once_within_80_columns) {
  const auto text = sinew({"list"}).out;
  for (const auto& algorithm : algorithms()) {
    EXPECT_TRUE(has(text, "\n  " + std::string(algorithm.name) + " ")) << algorithm.name;
    EXPECT_TRUE(has(text, std::string(algorithm.summary)));
  }
  EXPECT_LE(widest_line(text), 80U);
  EXPECT_FALSE(has(text, "\x1b"));
}

TEST(List, json_has_a_row_for_each_algorithm) {
  const auto document = Json::parse(sinew({"list", "--json", "--cost", "-p", "8"}).out);
  EXPECT_EQ(document["algorithms"].size(), algorithms().size());
  const auto& ring = document["algorithms"][0];
  EXPECT_EQ(ring["algorithm"], "ring");
  EXPECT_EQ(ring["cost"]["rounds"], 14);
  EXPECT_EQ(ring["cost"]["ranks"][0]["sent"], 1.75);
}

TEST(List, costs_are_multiples_of_the_message_with_their_formula) {
  const auto text = sinew({"list", "allreduce", "--cost", "-p", "8"}).out;
  EXPECT_TRUE(has(text, "ring                    14     14     14  1.75 S    1.75 S"));
  EXPECT_TRUE(has(text, "1.75 S = 2 (P-1)/P S"));
  EXPECT_TRUE(has(text, "DDP"));
  for (const auto ranks : {"1", "6", "8", "64"})
    EXPECT_LE(widest_line(sinew({"list", "--cost", "-p", ranks}).out), 80U) << ranks;
}

TEST(List, the_root_is_told_apart) {
  const auto text = sinew({"list", "gather", "--cost", "-p", "8"}).out;
  EXPECT_TRUE(has(text, "linear root")) << text;
  EXPECT_TRUE(has(text, "linear others"));
}

TEST(Draw, writes_each_format_to_standard_output) {
  const std::vector<std::string> ring{"draw", "allreduce", "--algo", "ring", "-p", "4"};
  const auto in = [&](const std::string& format) {
    auto words = ring;
    words.insert(words.end(), {"--format", format});
    return sinew(words).out;
  };
  EXPECT_EQ(sinew(ring).out, in("text"));
  EXPECT_TRUE(has(in("text"), "round"));
  EXPECT_TRUE(has(in("svg"), "<svg"));
  EXPECT_TRUE(in("goal").starts_with("num_ranks 4\n"));
  EXPECT_EQ(parse_world(in("json")), make_world(find_algorithm(Collective::allreduce, "ring"), 4));
}

TEST(Draw, reads_a_schedule_document) {
  const auto json =
      sinew({"draw", "reduce", "--algo", "binomial", "-p", "5", "--root", "2", "--json"}).out;
  EXPECT_EQ(sinew({"draw", "--schedule", "-", "--json"}, json).out, json);
  expect_error({"draw", "--schedule", "/nonexistent"}, 1, "No such file");
}

TEST(Draw, says_what_is_missing_or_does_not_fit) {
  expect_error({"draw"}, 2, "Name a collective");
  expect_error({"draw", "allreduce"}, 2, "ring, recursive_doubling");
  expect_error({"draw", "allreduce", "--algo", "ring"}, 2, "-p 4");
  expect_error({"draw", "allreduce", "--algo", "ring", "-p", "2,4"}, 2, "one rank count");
  expect_error({"draw", "allreduce", "--algo", "ring", "-p", "0"}, 2, "rank counts");
  expect_error({"draw", "allreduce", "--algo", "ring", "-p", "4", "--root", "7"}, 2, "root 7");
  expect_error({"draw", "allgather", "--algo", "recursive_doubling", "-p", "6"}, 2, "does not fit");
  expect_error({"draw", "allreduce", "--algo", "two_level", "-p", "6", "--nodes", "2x4"}, 2,
               "8 ranks");
  expect_error({"draw", "allreduce", "--algo", "two_level", "--nodes", "2y4"}, 2, "not a node map");
}

TEST(Draw, stays_within_80_columns) {
  for (const auto ranks : {"2", "5", "16", "33"})
    for (const auto algorithm : {"ring", "double_tree", "two_level", "direct"})
      EXPECT_LE(widest_line(sinew({"draw", "allreduce", "--algo", algorithm, "-p", ranks}).out),
                80U)
          << algorithm << " " << ranks;
}

TEST(Draw, nodes_give_the_rank_count) {
  const auto world = parse_world(
      sinew({"draw", "allreduce", "--algo", "two_level", "--nodes", "2x3", "--json"}).out);
  EXPECT_EQ(world.ranks.size(), 6U);
  EXPECT_EQ(world.ranks[0].groups, (std::vector<std::vector<int>>{{0, 1, 2}, {3, 4, 5}}));
}

TEST(Doctor, judges_every_line_and_its_status_follows) {
  const auto ran = sinew({"doctor", "--json", "-p", "4"});
  const auto document = Json::parse(ran.out);
  bool fails = false;
  for (const auto& check : document["checks"]) {
    const std::string level = check["level"];
    fails |= level == "fail";
    EXPECT_TRUE(level == "ok" || level == "warn" || level == "fail");
    EXPECT_FALSE(check["value"].get<std::string>().empty()) << check["check"];
    EXPECT_TRUE(level == "ok" || !check["repair"].get<std::string>().empty()) << check["check"];
  }
  EXPECT_EQ(document["ok"], !fails);
  EXPECT_EQ(ran.status, fails ? 3 : 0);
}

TEST(Doctor, stays_within_80_columns) {
  for (const auto ranks : {"1", "4", "4000"})
    EXPECT_LE(widest_line(sinew({"doctor", "-p", ranks}).out), 80U) << ranks;
}

TEST(Doctor, warns_when_ranks_outnumber_cores) {
  const auto document = Json::parse(sinew({"doctor", "--json", "-p", "4000"}).out);
  EXPECT_EQ(document["checks"][0]["check"], "cores");
  EXPECT_EQ(document["checks"][0]["level"], "warn");
}

}  // namespace
}  // namespace sinew::test
