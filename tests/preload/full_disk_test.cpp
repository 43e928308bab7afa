// The profiler on a disk that is full, from the beginning, midway or when the report is written:
// the program does what it does without, one line says what is missing, and the rest can be read.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "profiled.hpp"
#include "support/small_disk.hpp"
#include "trace/format.hpp"

namespace sinew::test {
namespace {

using trace::kBlockBytes;

constexpr std::uint64_t kCalls = 8000;  // records of about 16 blocks
constexpr std::uint64_t kKinds = 300;   // counters of 3 blocks, all new when the disk is full
constexpr auto kCause = "No space left on device";

class FullDisk : public Profiler {
 protected:
  void SetUp() override {
    Profiler::SetUp();
    base_ = folder_;
    std::filesystem::create_directory(base_ + "/disk");
    disk_.emplace(base_ + "/disk", std::size_t{1} << 20U);
    folder_ = base_ + "/disk/out";
    if (!disk_->problem().empty()) GTEST_SKIP() << disk_->problem();
  }
  void TearDown() override {
    disk_.reset();
    std::filesystem::remove_all(base_);
  }

  std::vector<std::string> program(int ranks, const std::string& how = "") {
    std::vector<std::string> words{GetParam().calls, "many", std::to_string(kCalls),
                                   std::to_string(kKinds)};
    if (!how.empty()) words.push_back(how);
    return launch(GetParam(), ranks, words);
  }
  Ran profiled(int ranks, const std::string& how = "") {
    std::vector<std::string> words{"profile", "-o", folder_, "--"};
    const auto command = program(ranks, how);
    words.insert(words.end(), command.begin(), command.end());
    return sinew(words);
  }
  /// Every call of these ranks is counted, each as what it was.
  void expect_all_counted(const Json& profile, std::uint64_t ranks) {
    EXPECT_EQ(profile["ranks"].size(), ranks);
    EXPECT_EQ(routine(profile, "MPI_Allreduce")["calls"], ranks * kCalls);
    EXPECT_EQ(routine(profile, "MPI_Allreduce")["sent_bytes"], ranks * kCalls * 8);
    EXPECT_EQ(routine(profile, "MPI_Bcast")["calls"], ranks * kKinds);
    std::set<std::uint64_t> sizes;
    for (const auto& row : profile["rows"])
      if (row["routine"] == "MPI_Bcast") sizes.insert(row["bytes"].get<std::uint64_t>());
    EXPECT_EQ(sizes.size(), kKinds);
    EXPECT_TRUE(routine(profile, "other calls").is_null());
  }

  std::string base_;
  std::optional<SmallDisk> disk_;
};

/// Lines of ours that name the folder and the cause.
std::vector<std::string> said(const std::string& err, const std::string& folder) {
  std::vector<std::string> lines;
  for (const auto& line : lines_of(err))
    if (has(line, "sinew") && has(line, folder) && has(line, kCause)) lines.push_back(line);
  return lines;
}

/// `part` stands in one of the warnings.
bool warns(const Json& profile, const std::string& part) {
  for (const auto& warning : profile["warnings"])
    if (has(warning.get<std::string>(), part)) return true;
  return false;
}

TEST_P(FullDisk, without_any_room_the_program_runs_as_it_is_and_one_line_says_so) {
  const auto bare = run(program(2));
  EXPECT_EQ(bare.status, 3);
  for (const bool files : {true, false}) {
    disk_->fill_but(0, files);
    const auto ran = profiled(2);
    EXPECT_EQ(ran.status, bare.status) << ran.err;
    EXPECT_EQ(ran.out, bare.out);
    ASSERT_EQ(said(ran.err, folder_).size(), 1U) << ran.err;
    EXPECT_TRUE(has(said(ran.err, folder_)[0], "runs without the profiler")) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(folder_)) << "nothing is left behind";
  }
}

TEST_P(FullDisk, without_any_room_each_rank_of_a_preloaded_program_says_so) {
  const auto bare = run(program(2));
  disk_->fill_but(0);
  auto words = program(2);
  words.insert(words.begin(),
               {"env", "LD_PRELOAD=" SINEW_PROFILE_LIBRARY, "SINEW_PROFILE_DIR=" + folder_});
  const auto ran = run(words);
  EXPECT_EQ(ran.status, bare.status) << ran.err;
  EXPECT_EQ(ran.out, bare.out);
  EXPECT_EQ(said(ran.err, folder_).size(), 2U) << ran.err;
  EXPECT_TRUE(has(ran.err, "not profiling")) << ran.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_P(FullDisk, midway_records_end_and_counters_go_on) {
  const auto bare = run(program(2));
  disk_->fill_but(40 * kBlockBytes);  // more than the ranks begin with, less than either needs
  const auto ran = profiled(2);
  EXPECT_EQ(ran.status, bare.status) << ran.err;
  EXPECT_TRUE(ran.out.starts_with(bare.out)) << ran.out;
  ASSERT_EQ(said(ran.err, folder_).size(), 1U) << ran.err;
  EXPECT_TRUE(has(said(ran.err, folder_)[0], "2 of 2 ranks")) << ran.err;
  const auto profile = shown();
  expect_all_counted(profile, 2);
  for (const char* const rank : {"rank 0: ", "rank 1: "})
    EXPECT_TRUE(warns(profile, std::string(rank) + "no room for all records (" + kCause))
        << profile["warnings"];
  EXPECT_FALSE(warns(profile, "cut off")) << profile["warnings"];
  const auto report = sinew({"report", folder_});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_TRUE(has(report.out, kCause)) << report.out;
  EXPECT_TRUE(has(report.out, "Allreduce")) << report.out;
}

bool has_traces(const std::string& folder) {
  if (!std::filesystem::exists(folder)) return false;
  const std::filesystem::directory_iterator files(folder);
  return std::any_of(begin(files), end(files),
                     [](const auto& file) { return file.path().extension() == ".trace"; });
}

TEST_P(FullDisk, with_room_for_some_ranks_or_blocks_only_the_program_runs_all_the_same) {
  const auto bare = run(program(2));
  for (const std::size_t blocks : {2, 3, 5, 9, 17}) {
    SCOPED_TRACE(blocks);
    std::filesystem::remove_all(folder_);
    disk_->fill_but(blocks * kBlockBytes);
    const auto ran = profiled(2);
    EXPECT_EQ(ran.status, bare.status) << ran.err;
    EXPECT_TRUE(ran.out.starts_with(bare.out)) << ran.out;
    EXPECT_GE(said(ran.err, folder_).size(), 1U) << ran.err;
    // Ranks that take the last blocks from each other may both find too few.
    if (!has_traces(folder_)) continue;
    const auto profile = shown();
    std::uint64_t calls = 0;
    for (const auto& row : profile["routines"])
      if (row["routine"] != "MPI_Allreduce") calls += row["calls"].get<std::uint64_t>();
    const auto ranks = profile["ranks"].size();
    EXPECT_EQ(routine(profile, "MPI_Allreduce")["calls"], ranks * kCalls);
    EXPECT_GE(calls, ranks * kKinds) << "none is lost, though some may be 'other calls'";
    EXPECT_TRUE(ranks == 2 || warns(profile, "traces of 1 ranks, but the job had 2"));
  }
}

TEST_P(FullDisk, whatever_ends_the_program_after_that_what_was_counted_is_there) {
  for (const auto& [how, status] : std::map<std::string, int>{{"exit", 7}, {"kill", 137}})
    for (const bool preloaded : {false, true}) {
      SCOPED_TRACE(how + (preloaded ? ", preloaded" : ""));
      std::filesystem::remove_all(folder_);
      disk_->fill_but(20 * kBlockBytes + 4096);  // and the beginning of a block
      auto words = program(1, how);
      words.insert(words.begin(),
                   {"env", "LD_PRELOAD=" SINEW_PROFILE_LIBRARY, "SINEW_PROFILE_DIR=" + folder_});
      const auto ran = preloaded ? run(words) : profiled(1, how);
      EXPECT_EQ(ran.status, status) << ran.err;
      EXPECT_EQ(said(ran.err, folder_).size(), preloaded ? 0U : 1U) << ran.err;
      const auto profile = shown();
      expect_all_counted(profile, 1);
      EXPECT_EQ(profile["ranks"][0]["ended_in_order"], false);
      EXPECT_TRUE(warns(profile, kCause)) << profile["warnings"];
      EXPECT_FALSE(warns(profile, "cut off")) << profile["warnings"];
      EXPECT_EQ(sinew({"report", folder_}).status, 0);
    }
}

TEST_P(FullDisk, a_report_without_room_is_an_error_and_the_exit_status_stays_the_programs) {
  const auto full = base_ + "/disk";
  disk_->fill_but(4096);  // for what the program prints: MPICH's launcher ends in failure without
  folder_ = base_ + "/out";
  const auto printed_there = [&](const std::string& arguments,
                                 const std::vector<std::string>& words) {
    std::string command = SINEW_PROGRAM " " + arguments;
    for (const auto& word : words) command += " " + word;
    return run({"sh", "-c", command + " > " + full + "/text"});
  };
  const auto with = [](const std::string& folder) { return "profile --json -o " + folder + " --"; };
  for (const auto& ran : {printed_there(with(folder_), program(2)),
                          printed_there(with(base_ + "/well"), {GetParam().calls, "big"})}) {
    EXPECT_EQ(ran.status, has(ran.err, "/well") ? 0 : 3) << ran.err;
    EXPECT_TRUE(has(ran.err, "sinew profile: ") && has(ran.err, kCause)) << ran.err;
  }
  expect_all_counted(shown(), 2);
  disk_->fill_but(0);
  for (const std::string format : {"html", "json", "csv", "mpitrace"}) {
    const auto report = sinew({"report", folder_, "--format", format, "-o", full + "/report"});
    EXPECT_EQ(report.status, 1) << format;
    EXPECT_EQ(lines_of(report.err).size(), 1U) << report.err;
    EXPECT_EQ(said(report.err, full + "/report").size(), 1U) << report.err;
    EXPECT_TRUE(std::filesystem::is_empty(full + "/report")) << "half a report";
  }
  const auto printed = printed_there("report --format html", {folder_});
  EXPECT_EQ(printed.status, 1);
  EXPECT_TRUE(has(printed.err, kCause)) << printed.err;
}

TEST_P(FullDisk, mpitraces_files_without_room_cost_a_line) {
  const auto bare = run(program(2));
  disk_->fill_but(0);
  folder_ = base_ + "/out";
  ::setenv("SINEW_FORMAT", "mpitrace", 1);
  ::setenv("TRACE_DIR", (base_ + "/disk").c_str(), 1);
  const auto ran = profiled(2);
  ::unsetenv("SINEW_FORMAT");
  ::unsetenv("TRACE_DIR");
  EXPECT_EQ(ran.status, bare.status) << ran.err;
  EXPECT_TRUE(ran.out.starts_with(bare.out)) << ran.out;
  EXPECT_GE(said(ran.err, base_ + "/disk/mpi_profile").size(), 1U) << ran.err;
  expect_all_counted(shown(), 2);
}

INSTANTIATE_TEST_SUITE_P(Mpis, FullDisk, testing::ValuesIn(installed()),
                         [](const auto& with) { return with.param.name; });

}  // namespace
}  // namespace sinew::test
