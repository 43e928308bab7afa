// `sinew bench sparse`: figures that make sense, gradients from files, and what it refuses.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.hpp"

namespace sinew {
namespace {

using test::expect_error;
using test::has;

nlohmann::json results_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"bench", "sparse"});
  arguments.insert(arguments.end(), {"--json", "--rounds", "1", "--steps", "3"});
  const auto ran = test::sinew(arguments);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return nlohmann::json::parse(ran.out)["results"];
}

class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& bytes)
      : path_(std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + name)) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string floats(std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 100) - 49.5F);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string npy(const std::string& header, const std::string& data) {
  std::string text = "\x93NUMPY";
  text += '\x01';
  text += '\0';
  text += static_cast<char>(header.size());
  text += '\0';
  return text + header + data;
}

TEST(BenchSparse, stays_within_80_columns) {
  const auto ran = test::sinew({"bench", "sparse", "--scheme", "all", "--elements", "20000", "-p",
                                "2", "--rounds", "1", "--steps", "2"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "conserved")) << ran.out;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(BenchSparse, reports_every_scheme_with_dense_beside_it) {
  for (const std::string transport : {"shm", "local", "tcp"}) {
    const auto results =
        results_of({"--scheme", "all", "--elements", "20000", "-p", "3", "--transport", transport});
    ASSERT_GE(results.size(), 3U);
    for (const auto& row : results) {
      EXPECT_GT(row["step_ms_p50"], 0.0);
      EXPECT_GE(row["step_ms_max"], row["step_ms_p50"]);
      EXPECT_GT(row["dense_ms_p50"], 0.0);
      EXPECT_GE(row["dense_ms_max"], row["dense_ms_p50"]);
      const std::vector<double> steps = row["steps_ms"];
      EXPECT_EQ(row["step_ms_max"], *std::max_element(steps.begin(), steps.end()));
      EXPECT_GT(row["bytes_per_rank"], 0.0);
      EXPECT_EQ(row["split_ms"].size(), 5U);
      if (row["scheme"] != "oktopk") continue;
      EXPECT_EQ(row["items_over_k_min"], 1.0);
      EXPECT_EQ(row["items_over_k_max"], 1.0);
      EXPECT_EQ(row["conserved"], true);
      EXPECT_LT(row["bytes_per_rank"], 80000.0);  // dense: 106,667
      EXPECT_LT(row["rel_l2_error"], 1.0);
    }
  }
}

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

TEST(BenchSparse, says_how_even_the_steps_of_a_round_are) {
  constexpr std::ptrdiff_t kRounds = 3, kSteps = 4;
  const auto ran = test::sinew({"bench", "sparse", "--elements", "20000", "--rounds", "3",
                                "--steps", "4", "--json", "--against", "openmpi"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto document = nlohmann::json::parse(ran.out);
  EXPECT_EQ(document["command"],
            "sinew bench sparse --elements 20000 --rounds 3 --steps 4 --json "
            "--against openmpi");
  EXPECT_GT(document["machine"]["cores"], 0);
  const auto row = document["results"][0];
  const std::vector<double> steps = row["steps_ms"];
  ASSERT_EQ(steps.size(), kRounds * kSteps);
  std::vector<double> uneven;
  for (auto first = steps.begin(); first != steps.end(); first += kSteps)
    uneven.push_back(*std::max_element(first, first + kSteps) / middle({first, first + kSteps}));
  EXPECT_DOUBLE_EQ(row["step_worst_over_median"], middle(uneven));
  EXPECT_GE(row["dense_worst_over_median"], 1.0);
  for (const auto& peer : row["peers"]) EXPECT_GE(peer["dense_worst_over_median"], 1.0);
}

TEST(BenchSparse, reads_gradients_from_files) {
  const TemporaryFile raw("raw.f32", floats(5000));
  const TemporaryFile array(
      "array.npy",
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4000,), }\n", floats(4000)));
  EXPECT_EQ(results_of({"--gradient", raw.path()})[0]["elements"], 5000);
  EXPECT_EQ(results_of({"--gradient", array.path()})[0]["elements"], 4000);
}

TEST(BenchSparse, refuses_what_it_cannot_do) {
  const TemporaryFile odd("odd.f32", "12345");
  const TemporaryFile doubles(
      "doubles.npy",
      npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }\n", "12345678"));
  const TemporaryFile cut("cut.npy", std::string("\x93NUMPY\x01\0\xff\xff", 10));
  expect_error({"bench", "sparse", "--density", "0"}, 2, "not in (0, 1]");
  expect_error({"bench", "sparse", "--scheme", "oktop"}, 2, "oktopk");
  expect_error({"bench", "sparse", "--elements", "0"}, 2, "nothing to send");
  expect_error({"bench", "sparse", "--set", "repartition"}, 2, "name=number");
  expect_error({"bench", "sparse", "--set", "repartitoin=3"}, 2, "repartition");
  expect_error({"bench", "sparse", "--transport", "ucx"}, 2, "transport");
  expect_error({"bench", "sparse", "--gradient", odd.path()}, 2, "whole number of f32");
  expect_error({"bench", "sparse", "--gradient", doubles.path()}, 2, "<f4");
  expect_error({"bench", "sparse", "--gradient", cut.path()}, 2, "cut off");
}

}  // namespace
}  // namespace sinew
