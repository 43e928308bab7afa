// `sinew demo collectives` from outside: the numbers are those the collectives promise.
#include <gtest/gtest.h>
#include <sinew/algorithms.hpp>

#include <algorithm>

#include "support/program.hpp"

namespace sinew::test {
namespace {

// The lines of one collective: its title, its table, its algorithms.
std::vector<std::string> part_of(const std::string& text, const std::string& collective) {
  const auto lines = lines_of(text);
  const auto begin = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.starts_with(collective + ":");
  });
  return {begin, std::find(begin, lines.end(), "")};
}

// Spaces squeezed, since columns are as wide as their widest cell.
std::vector<std::string> table_of(const std::string& text, const std::string& collective) {
  std::vector<std::string> rows;
  for (auto line : part_of(text, collective)) {
    if (!has(line, "->")) continue;
    line.erase(
        std::unique(line.begin(), line.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
        line.end());
    rows.push_back(line);
  }
  return rows;
}

using Rows = std::vector<std::string>;

TEST(Demo, shows_each_collective_before_and_after) {
  const auto ran = sinew({"demo", "collectives", "-p", "3"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  const auto& text = ran.out;
  EXPECT_EQ(table_of(text, "allreduce"),
            (Rows{" 0 10 11 -> 60 63", " 1 20 21 -> 60 63", " 2 30 31 -> 60 63"}));
  EXPECT_EQ(table_of(text, "reduce"),
            (Rows{" 0 10 11 -> 60 63", " 1 20 21 -> -", " 2 30 31 -> -"}));
  EXPECT_EQ(table_of(text, "broadcast"),
            (Rows{" 0 10 11 -> 10 11", " 1 - -> 10 11", " 2 - -> 10 11"}));
  EXPECT_EQ(table_of(text, "allgather"),
            (Rows{" 0 10 -> 10 20 30", " 1 20 -> 10 20 30", " 2 30 -> 10 20 30"}));
  EXPECT_EQ(table_of(text, "reduce_scatter"),
            (Rows{" 0 10 11 12 -> 60", " 1 20 21 22 -> 63", " 2 30 31 32 -> 66"}));
  EXPECT_EQ(table_of(text, "alltoall"), (Rows{" 0 10 11 12 -> 10 20 30", " 1 20 21 22 -> 11 21 31",
                                              " 2 30 31 32 -> 12 22 32"}));
  EXPECT_EQ(table_of(text, "scatter"), (Rows{" 0 10 11 12 -> 10", " 1 - -> 11", " 2 - -> 12"}));
  EXPECT_EQ(table_of(text, "gather"), (Rows{" 0 10 -> 10 20 30", " 1 20 -> -", " 2 30 -> -"}));
  EXPECT_TRUE(table_of(text, "barrier").empty());
}

TEST(Demo, names_every_algorithm_that_fits_with_what_it_moves) {
  const auto text = sinew({"demo", "collectives", "-p", "4"}).out;
  for (const auto& algorithm : algorithms()) {
    const bool fits = algorithm.fits({0, 4, 0, 1, {}}, kOneHost);
    bool named = false;
    for (const auto& line : part_of(text, std::string(name(algorithm.collective))))
      named |= line.starts_with("  " + std::string(algorithm.name) + " ");
    EXPECT_EQ(named, fits) << name(algorithm.collective) << " " << algorithm.name;
  }
  // A ring sends 2 (P-1)/P of two numbers in 2 (P-1) rounds.
  EXPECT_TRUE(has(text, "  ring                  6 rounds, 13 steps,  12 B sent,   0 B shared\n"));
}

TEST(Demo, stays_within_80_columns) {
  for (const auto ranks : {"1", "4", "8", "16"})
    EXPECT_LE(widest_line(sinew({"demo", "collectives", "-p", ranks}).out), 80U) << ranks;
}

TEST(Demo, refuses_what_it_does_not_know) {
  expect_error({"demo", "colectives"}, 2, "did you mean 'collectives'?");
  expect_error({"demo", "collectives", "-p", "2,4"}, 2, "one rank count");
  expect_error({"demo", "collectives", "-p", "0"}, 2, "rank counts");
}

}  // namespace
}  // namespace sinew::test
