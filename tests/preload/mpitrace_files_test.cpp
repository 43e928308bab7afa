// LD_PRELOAD and SINEW_FORMAT=mpitrace alone leave mpitrace's files; the example that polls like
// Horovod is profiled and diagnosed.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "support/program.hpp"

namespace sinew::test {
namespace {

using Json = nlohmann::json;

struct Mpi {
  std::string name, calls, classes, horovod_like;
};

std::vector<Mpi> installed() {
  std::vector<Mpi> all;
#ifdef SINEW_MPI_CALLS_OPENMPI
  all.push_back(
      {"openmpi", SINEW_MPI_CALLS_OPENMPI, SINEW_MPI_CLASSES_OPENMPI, SINEW_HOROVOD_LIKE_OPENMPI});
#endif
#ifdef SINEW_MPI_CALLS_MPICH
  all.push_back(
      {"mpich", SINEW_MPI_CALLS_MPICH, SINEW_MPI_CLASSES_MPICH, SINEW_HOROVOD_LIKE_MPICH});
#endif
  return all;
}

class MpitraceFiles : public testing::TestWithParam<Mpi> {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-mt-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] static std::vector<std::string> launch(int ranks) {
    std::vector<std::string> words{"mpirun." + GetParam().name};
    if (GetParam().name == "openmpi")
      words.insert(words.end(),
                   {"--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"});
    words.insert(words.end(), {"-n", std::to_string(ranks)});
    return words;
  }

  /// Runs `program` with the library preloaded and these variables.
  Ran preloaded(int ranks, const std::vector<std::string>& program,
                const std::vector<std::string>& variables) {
    std::vector<std::string> words{"env", "TRACE_DIR=" + folder_, "SINEW_PROFILE_DIR=" + traces()};
    words.insert(words.end(), variables.begin(), variables.end());
    words.emplace_back("LD_PRELOAD=" SINEW_PROFILE_LIBRARY);
    if (ranks > 1) {
      const auto launcher = launch(ranks);
      words.insert(words.end(), launcher.begin(), launcher.end());
    }
    words.insert(words.end(), program.begin(), program.end());
    return run(words);
  }

  [[nodiscard]] std::string traces() const { return folder_ + "/traces"; }
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      if (entry.is_regular_file()) names.insert(entry.path().filename().string());
    return names;
  }
  std::string folder_;
};

/// "MPI_Bcast 3 40.0" of every line of the tables of routines and sizes, without the times.
std::vector<std::string> counts_of(const std::string& text) {
  std::vector<std::string> counts;
  for (const auto& line : lines_of(text)) {
    if (line.starts_with("total") || line.starts_with("MPI timing") || has(line, "Summary"))
      continue;
    char routine[64] = "";
    unsigned long calls = 0;
    double bytes = 0, seconds = 0;
    if (std::sscanf(line.c_str(), "MPI_%60s %lu %lf %lf", routine, &calls, &bytes, &seconds) == 4 ||
        std::sscanf(line.c_str(), "          %lu %lf %lf", &calls, &bytes, &seconds) == 3)
      counts.push_back(std::string(routine) + " " + std::to_string(calls) + " " +
                       std::to_string(bytes));
  }
  return counts;
}

TEST_P(MpitraceFiles, are_left_by_a_variable_and_hold_what_the_traces_hold) {
  const auto ran = preloaded(3, {GetParam().classes, "/tmp"},
                             {"SINEW_FORMAT=mpitrace", "SAVE_ALL_TASKS=yes", "COBALT_JOBID=77"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(files(),
            (std::set<std::string>{"mpi_profile.77.0", "mpi_profile.77.1", "mpi_profile.77.2"}))
      << ran.err;
  const auto report = sinew({"report", traces(), "--format", "mpitrace", "--ranks", "all", "-o",
                             folder_ + "/again", "--job", "77"});
  ASSERT_EQ(report.status, 0) << report.err;
  for (const int rank : {0, 1, 2}) {
    const auto name = "/mpi_profile.77." + std::to_string(rank);
    const auto left = run({"cat", folder_ + name}).out,
               again = run({"cat", folder_ + "/again" + name}).out;
    EXPECT_GT(counts_of(left).size(), 40U) << left;
    EXPECT_EQ(counts_of(left), counts_of(again)) << rank;
    EXPECT_EQ(has(left, "MPI timing summary for all ranks"), rank == 0);
  }
  const auto imported = sinew({"import", "--format", "profile-json", folder_ + "/mpi_profile.77.0",
                               folder_ + "/mpi_profile.77.1", folder_ + "/mpi_profile.77.2"});
  ASSERT_EQ(imported.status, 0) << imported.err;
  const auto profile = Json::parse(imported.out);
  ASSERT_EQ(profile["ranks"].size(), 3U);
  for (const auto& rank : profile["ranks"]) {
    EXPECT_TRUE(rank.contains("resident_kib") && rank.contains("cpu") && rank.contains("user_s"));
    EXPECT_EQ(rank["size"], 3);
  }
}

TEST_P(MpitraceFiles, are_of_rank_0_and_of_the_least_median_and_most_communication) {
  preloaded(2, {GetParam().classes, "/tmp"}, {"SINEW_FORMAT=mpitrace"});
  const auto names = files();
  EXPECT_GE(names.size(), 1U);
  EXPECT_LE(names.size(), 2U);
  for (const auto& name : names) EXPECT_TRUE(name.starts_with("mpi_profile.")) << name;
}

TEST_P(MpitraceFiles, need_the_variable) {
  preloaded(1, {GetParam().calls, "big"}, {});
  EXPECT_TRUE(files().empty());
  const auto ran = preloaded(1, {GetParam().calls, "big"}, {"SINEW_FORMAT=mpitraec"});
  EXPECT_TRUE(files().empty());
  EXPECT_TRUE(has(ran.err, "SINEW_FORMAT=mpitraec is unknown")) << ran.err;
}

TEST_P(MpitraceFiles, that_cannot_be_written_cost_one_line_and_nothing_else) {
  const auto ran =
      preloaded(1, {GetParam().calls, "big"}, {"SINEW_FORMAT=mpitrace", "TRACE_DIR=/proc/nowhere"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(has(ran.err, "cannot write /proc/nowhere/mpi_profile.")) << ran.err;
}

TEST_P(MpitraceFiles, the_example_that_polls_is_counted_exactly_and_found_out) {
  auto words = launch(2);
  words.insert(words.begin(), {"profile", "-o", traces(), "--"});
  words.insert(words.end(), {GetParam().horovod_like, "--steps", "6", "--cycle-us", "100"});
  const auto ran = sinew(words);
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "2 ranks, 6 steps, 186 polls, 18 reductions")) << ran.out;
  const auto report = Json::parse(sinew({"report", traces(), "--format", "profile-json"}).out);
  int small = 0, large = 0;
  for (const auto& row : report["rows"]) {
    if (row["routine"] != "MPI_Allreduce") continue;
    (row["bytes"] == 8 ? small : large) += row["calls"].get<int>();
  }
  EXPECT_EQ(small, 2 * 186);
  EXPECT_EQ(large, 2 * 18);
  ASSERT_FALSE(report["findings"].empty());
  const auto& finding = report["findings"][0];
  EXPECT_EQ(finding["id"], "allreduce-polling");
  EXPECT_EQ(finding["confidence"], "measured");
  EXPECT_TRUE(has(finding["claim"].get<std::string>(), "31.0 eight-byte")) << finding;
}

INSTANTIATE_TEST_SUITE_P(Mpis, MpitraceFiles, testing::ValuesIn(installed()),
                         [](const auto& mpi) { return mpi.param.name; });

}  // namespace
}  // namespace sinew::test
