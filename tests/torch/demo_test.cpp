// `sinew demo` with small models: two runs side by side, and the tables of one with two phases.
// Both fit a terminal, and what they show as typed can be typed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/program.hpp"
#include "support/train_runs.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;
using test::RunFolder;

// The commands that were shown, each in one line again.
std::vector<std::string> commands_in(const std::string& text) {
  std::vector<std::string> commands;
  bool goes_on = false;
  for (auto line : test::lines_of(text)) {
    if (!goes_on && !line.starts_with("$ ")) continue;
    const bool was_going_on = goes_on;
    goes_on = line.ends_with(" \\");
    if (goes_on) line.resize(line.size() - 2);
    if (was_going_on)
      commands.back() += " " + line.substr(line.find_first_not_of(' '));
    else
      commands.push_back(line);
  }
  return commands;
}

TEST(DemoTraining, compares_two_runs_and_writes_a_report) {
  const RunFolder folder;
  const auto ran = test::sinew({"demo", "--model", "mlp", "--data", "synthetic:200", "--steps",
                                "12", "-p", "2", "-o", folder.name()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_LE(test::widest_line(ran.out), 80U) << ran.out;
  EXPECT_LE(test::widest_line(ran.err), 80U) << ran.err;
  for (const auto* file : {"comparison.html", "comparison.md", "dense/report.html",
                           "oktopk/report.html", "oktopk/result.json"})
    EXPECT_TRUE(fs::exists(folder / file)) << file;
  EXPECT_EQ(commands_in(ran.out),
            (std::vector<std::string>{
                "$ sinew train --model mlp -p 2 --steps 12 -o " + folder.name() +
                    "/dense --data synthetic:200 --batch 32",
                "$ sinew train --model mlp -p 2 --steps 12 -o " + folder.name() +
                    "/oktopk --compress oktopk:0.02 --warmup 1 --data synthetic:200 --batch 32"}));
  const auto accuracy = [&](const char* run) {
    const auto result = nlohmann::json::parse(folder.text(fmt::format("{}/result.json", run)));
    return fmt::format("{:.2f} %", 100 * result["accuracy"].get<double>());
  };
  bool is_shown = false;
  for (const auto& line : test::lines_of(ran.out))
    is_shown |= line.starts_with("  accuracy ") && test::has(line, accuracy("dense")) &&
                test::has(line, accuracy("oktopk"));
  EXPECT_TRUE(is_shown) << ran.out;
  for (const auto* workers : {"\n        8 ", "\n       64 "})
    EXPECT_TRUE(test::has(ran.out, workers)) << ran.out;
  EXPECT_TRUE(test::has(ran.out, "Report: " + folder.name() + "/comparison.html")) << ran.out;
}

TEST(DemoSeedRun, measures_both_phases_and_prints_their_tables) {
  const RunFolder folder;
  const auto ran = test::sinew({"demo", "--seed-run", "--model", "ctc-small", "--data", "tones:32",
                                "--steps", "6", "-p", "2", "-o", folder.name()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_LE(test::widest_line(ran.out), 80U) << ran.out;
  EXPECT_LE(test::widest_line(ran.err), 80U) << ran.err;
  // All gradients of a dense step are one message, of 4 x 391,944 bytes: 2 workers, 3 steps.
  EXPECT_TRUE(test::has(ran.out, "\n1567776      6         100.0 %")) << ran.out;
  for (const auto* part :
       {"allreduce (bucket 0)", "alltoall (oktopk split)", "allgather (oktopk gather)",
        "dense (from 0)", "sparse (from 3)", "selecting and encoding", "density asked for"})
    EXPECT_TRUE(test::has(ran.out, part)) << part << "\n" << ran.out;
  EXPECT_TRUE(test::has(ran.out, "Report: " + folder.name() + "/seed-run/report.html")) << ran.out;
}

TEST(DemoSeedRun, names_a_model_that_is_not_there) {
  test::expect_error({"demo", "--seed-run", "--model", "lstman5"}, 3, "no model lstman5");
}

}  // namespace
}  // namespace sinew
