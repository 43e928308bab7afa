// The profiler where something is odd: turned off, nowhere to write, an MPI it does not know, ranks
// that are left out, Python.
#include "profiled.hpp"

namespace sinew::test {
namespace {

TEST_P(Profiler, can_be_turned_off) {
  ::setenv("SINEW_PROFILE", "0", 1);
  const auto ran = profile(1, {"status"});
  ::unsetenv("SINEW_PROFILE");
  EXPECT_EQ(ran.status, 3);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_P(Profiler, a_folder_that_cannot_be_written_to_costs_one_line) {
  const auto ran = run({"env", "LD_PRELOAD=" SINEW_PROFILE_LIBRARY,
                        "SINEW_PROFILE_DIR=/proc/nowhere", GetParam().calls, "status"});
  EXPECT_EQ(ran.status, 3);
  EXPECT_TRUE(has(ran.err, "not profiling")) << ran.err;
  EXPECT_EQ(lines_of(ran.err).size(), 1U) << ran.err;
}

TEST_P(Profiler, only_the_ranks_that_were_asked_for_leave_traces) {
  const auto ran = profile(3, {"late", "3"}, {"--ranks", "0,2"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const auto profile = shown();
  ASSERT_EQ(profile["ranks"].size(), 2U);
  EXPECT_EQ(profile["ranks"][0]["rank"], 0);
  EXPECT_EQ(profile["ranks"][1]["rank"], 2);
}

TEST_P(Profiler, a_process_with_nccl_is_told_what_is_not_seen) {
  ::setenv("LD_PRELOAD", SINEW_FAKE_NCCL, 1);
  const auto ran = profile(1, {"big"});
  ::unsetenv("LD_PRELOAD");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "NCCL")) << ran.out;
}

TEST_P(Profiler, wrappers_of_the_other_mpi_pass_everything_through) {
  const auto folder = std::filesystem::path(SINEW_PROFILE_LIBRARY).parent_path();
  for (const std::string kind : {"openmpi", "mpich"}) {
    const auto library = (folder / ("libsinew-profile-" + kind + ".so")).string();
    if (!std::filesystem::exists(library)) continue;
    const auto ran = run({"env", "LD_PRELOAD=" + library, GetParam().calls, "status"});
    EXPECT_EQ(ran.status, 3) << kind;
    EXPECT_EQ(ran.err, "") << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(Mpis, Profiler, testing::ValuesIn(installed()),
                         [](const auto& with) { return with.param.name; });

TEST(ProfilerPython, counts_as_counted_by_hand_and_ends_in_order) {
  constexpr auto kPython = "/usr/bin/python3";  // whose packages Debian installs
  const auto version = run({kPython, "-c", "from mpi4py import MPI; print(MPI.get_vendor()[0])"});
  if (version.status != 0) GTEST_SKIP() << "no mpi4py";
  Mpi mpi;
  mpi.name = has(version.out, "Open MPI") ? "openmpi" : "mpich";
  std::string folder = (std::filesystem::temp_directory_path() / "sinew-prof-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  auto words = launch(mpi, 2, {kPython, SINEW_SOURCE_DIR "/tests/programs/mpi_calls.py", folder});
  words.insert(words.begin(), {"profile", "-o", folder, "--"});
  const auto ran = sinew(words);
  EXPECT_EQ(ran.status, 0) << ran.err;
  const auto shown = sinew({"profile", "show", folder, "--json"});
  const auto profile = Json::parse(shown.out);
  const auto by_hand = counted_by_hand(text_of(folder + "/0") + text_of(folder + "/1"));
  EXPECT_GT(by_hand.size(), 25U) << ran.out;
  for (const auto& [name, sum] : by_hand) {  // it calls more than its user does
    const auto row = routine(profile, name);
    ASSERT_FALSE(row.is_null()) << name;
    EXPECT_EQ(row["calls"], sum.calls) << name;
    EXPECT_EQ(row["sent_bytes"], sum.sent) << name;
    EXPECT_EQ(row["received_bytes"], sum.received) << name;
  }
  EXPECT_EQ(profile["ranks"].size(), 2U);
  EXPECT_EQ(profile["warnings"].size(), 0U) << profile["warnings"];
  std::filesystem::remove_all(folder);
}

TEST(ProfilerFront, an_mpi_that_it_does_not_know_costs_one_line) {
  const auto bare = run({SINEW_ODD_MPI_PROGRAM});
  EXPECT_EQ(bare.out, "rank 5\n");
  const auto ran = run({"env", "LD_PRELOAD=" SINEW_PROFILE_LIBRARY, SINEW_ODD_MPI_PROGRAM});
  EXPECT_EQ(ran.status, bare.status);
  EXPECT_EQ(ran.out, bare.out);
  EXPECT_EQ(lines_of(ran.err).size(), 1U) << ran.err;
  EXPECT_TRUE(has(ran.err, "not profiling")) << ran.err;
}

TEST(ProfilerFront, programs_without_mpi_are_untouched) {
  const auto ran = run({"env", "LD_PRELOAD=" SINEW_PROFILE_LIBRARY, "bash", "-c", "echo fine"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "fine\n");
  EXPECT_EQ(ran.err, "");
  const auto needs = run({"readelf", "-d", SINEW_PROFILE_LIBRARY});
  EXPECT_FALSE(has(needs.out, "libmpi"));
}

TEST(ProfilerVerb, bad_usage_is_explained) {
  expect_error({"profile"}, 2, "mpirun -n 4");
  expect_error({"profile", "--budged", "1", "--", "true"}, 2, "--budget");
  expect_error({"profile", "--label", "tag=x:Y", "--", "true"}, 2, "tag=1:NAME");
  expect_error({"profile", "--ranks", "0-", "--", "true"}, 2, "--ranks");
  expect_error({"profile", "show", "/no/such/folder"}, 2, "/no/such/folder");
}

}  // namespace
}  // namespace sinew::test
