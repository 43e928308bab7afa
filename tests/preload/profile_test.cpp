// The profiler in real MPI programs, under every MPI that is installed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.hpp"

namespace sinew::test {
namespace {

using Json = nlohmann::json;

struct Mpi {
  std::string name, program;
};

std::vector<Mpi> installed() {
  std::vector<Mpi> all;
#ifdef SINEW_MPI_CALLS_OPENMPI
  all.push_back({"openmpi", SINEW_MPI_CALLS_OPENMPI});
#endif
#ifdef SINEW_MPI_CALLS_MPICH
  all.push_back({"mpich", SINEW_MPI_CALLS_MPICH});
#endif
  return all;
}

/// One rank needs no mpirun, which takes seconds to notice that a rank has failed.
std::vector<std::string> launch(const Mpi& mpi, int ranks,
                                const std::vector<std::string>& arguments) {
  std::vector<std::string> words{ranks == 1 ? "env" : "mpirun." + mpi.name};
  if (ranks == 1) {
    words.push_back(mpi.program);
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }
  if (mpi.name == "openmpi")
    words.insert(words.end(),
                 {"--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"});
  words.insert(words.end(), {"-n", std::to_string(ranks), mpi.program});
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

class Profiler : public testing::TestWithParam<Mpi> {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-prof-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Ran profile(int ranks, const std::vector<std::string>& arguments,
              std::vector<std::string> options = {}) {
    std::vector<std::string> words{"profile", "-o", folder_};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    const auto command = launch(GetParam(), ranks, arguments);
    words.insert(words.end(), command.begin(), command.end());
    return sinew(words);
  }
  Json shown() {
    const auto ran = sinew({"profile", "show", folder_, "--json"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return Json::parse(ran.out);
  }
  std::string folder_;
};

Json routine(const Json& profile, const std::string& name) {
  for (const auto& row : profile["routines"])
    if (row["routine"] == name) return row;
  return {};
}

void expect_sums_agree(const Json& profile) {
  const auto sum = [](const Json& rows, const char* field) {
    std::uint64_t total = 0;
    for (const auto& row : rows) total += row[field].get<std::uint64_t>();
    return total;
  };
  for (const char* const field : {"calls", "sent_bytes", "received_bytes"}) {
    EXPECT_EQ(sum(profile["rows"], field), sum(profile["routines"], field));
    EXPECT_EQ(sum(profile["rows"], field), sum(profile["ranks"], field));
  }
}

TEST_P(Profiler, counts_every_class_of_call_as_counted_by_hand) {
  for (const int ranks : {2, 3}) {
    std::filesystem::remove_all(folder_);
    const auto ran = profile(ranks, {"classes"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    struct Sum {
      std::uint64_t calls = 0, sent = 0, received = 0;
    };
    std::map<std::string, Sum> by_hand;
    for (const auto& line : lines_of(ran.out)) {
      std::istringstream words(line);
      std::string word, name;
      Sum sum;
      if (!(words >> word >> name >> sum.calls >> sum.sent >> sum.received) || word != "expect")
        continue;
      by_hand[name].calls += sum.calls;
      by_hand[name].sent += sum.sent;
      by_hand[name].received += sum.received;
    }
    ASSERT_GT(by_hand.size(), 40U) << ran.out << ran.err;
    const auto profile = shown();
    for (const auto& [name, sum] : by_hand) {
      const auto row = routine(profile, name);
      ASSERT_FALSE(row.is_null()) << name;
      EXPECT_EQ(row["calls"], sum.calls) << name;
      EXPECT_EQ(row["sent_bytes"], sum.sent) << name;
      EXPECT_EQ(row["received_bytes"], sum.received) << name;
    }
    for (const auto& row : profile["routines"])
      EXPECT_EQ(by_hand.count(row["routine"]), 1U) << row["routine"] << " was not called";
    EXPECT_EQ(profile["ranks"].size(), static_cast<std::size_t>(ranks));
    EXPECT_EQ(profile["warnings"].size(), 0U) << profile["warnings"];
    expect_sums_agree(profile);
  }
}

TEST_P(Profiler, fifteen_gibibytes_are_fifteen) {
  profile(1, {"big"});
  const auto row = routine(shown(), "MPI_Bcast");
  EXPECT_EQ(row["calls"], 5U);
  EXPECT_EQ(row["sent_bytes"], std::uint64_t{15} << 30U);
}

TEST_P(Profiler, four_threads_lose_no_call) {
  const int calls = std::getenv("SINEW_FULL") != nullptr ? 2'000'000 : 200'000;
  profile(1, {"threads", std::to_string(calls)});
  EXPECT_EQ(routine(shown(), "MPI_Comm_rank")["calls"], 4 * calls + 1);
}

TEST_P(Profiler, a_rank_that_dies_leaves_all_its_calls) {
  for (const std::string how : {"abort", "exit", "kill", "segfault"}) {
    std::filesystem::remove_all(folder_);
    const auto bare = run(launch(GetParam(), 1, {how, "1234"}));
    EXPECT_NE(bare.status, 0);
    const auto ran = profile(1, {how, "1234"});
    EXPECT_EQ(ran.status, bare.status) << how << ": " << ran.err;
    const auto profile = shown();
    EXPECT_EQ(routine(profile, "MPI_Allreduce")["calls"], 1234U) << how;
    EXPECT_EQ(profile["ranks"][0]["ended_in_order"], false) << how;
    EXPECT_FALSE(profile["warnings"].empty());
  }
}

TEST_P(Profiler, waiting_is_told_from_transfer_and_shown_on_a_screen) {
  const auto ran = profile(2, {"skew"});
  EXPECT_TRUE(has(ran.err, folder_)) << "names the folder";
  std::map<int, double> by_hand;
  std::string screen;
  for (const auto& line : lines_of(ran.out)) {
    std::istringstream words(line);
    std::string word;
    int rank = 0;
    double waited = 0;
    if (words >> word >> rank >> waited && word == "waited")
      by_hand[rank] = waited;
    else
      screen += line + "\n";
  }
  EXPECT_LE(widest_line(screen), 80U) << screen;
  EXPECT_LE(lines_of(screen).size(), 40U) << screen;
  EXPECT_TRUE(has(screen, "Allreduce"));
  const auto row = routine(shown(), "MPI_Allreduce");
  EXPECT_EQ(row["compared_calls"], 100U);
  EXPECT_GT(by_hand[0], 0.9e9) << "50 times 20 ms";
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_NEAR(row["waited_by_rank_ns"][rank].get<double>(), by_hand[rank], 0.1e9) << rank;
}

TEST_P(Profiler, both_fortran_bindings_are_counted_once) {
  const auto compiler = "mpif90." + GetParam().name;
  if (run({"which", compiler}).status != 0) GTEST_SKIP() << "no " << compiler;
  for (const std::string binding : {"-UF08", "-DF08"}) {
    const auto program = folder_ + "/fortran" + binding;
    const auto built = run({compiler, "-cpp", binding, "-J", folder_, "-o", program,
                            SINEW_SOURCE_DIR "/tests/programs/mpi_calls.f90"});
    ASSERT_EQ(built.status, 0) << built.err;
    auto command = launch({GetParam().name, program}, 2, {});
    command.insert(command.begin(), {"profile", "-o", folder_ + "/out" + binding, "--json", "--"});
    const auto ran = sinew(command);
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto profile = Json::parse(ran.out);
    EXPECT_EQ(routine(profile, "MPI_Allreduce")["calls"], 100U) << binding;
    EXPECT_EQ(routine(profile, "MPI_Allreduce")["sent_bytes"], 1600U) << binding;
    EXPECT_EQ(routine(profile, "MPI_Send")["sent_bytes"], 28U) << binding;
    EXPECT_EQ(routine(profile, "MPI_Irecv")["received_bytes"], 28U) << binding;
    EXPECT_EQ(routine(profile, "MPI_Finalize")["calls"], 2U) << binding;
  }
}

TEST_P(Profiler, can_be_turned_off) {
  ::setenv("SINEW_PROFILE", "0", 1);
  const auto ran = profile(1, {"status"});
  ::unsetenv("SINEW_PROFILE");
  EXPECT_EQ(ran.status, 3);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_P(Profiler, a_folder_that_cannot_be_written_to_costs_one_line) {
  const auto ran = run({"env", "LD_PRELOAD=" SINEW_PROFILE_LIBRARY,
                        "SINEW_PROFILE_DIR=/proc/nowhere", GetParam().program, "status"});
  EXPECT_EQ(ran.status, 3);
  EXPECT_TRUE(has(ran.err, "not profiling")) << ran.err;
  EXPECT_EQ(lines_of(ran.err).size(), 1U) << ran.err;
}

INSTANTIATE_TEST_SUITE_P(Mpis, Profiler, testing::ValuesIn(installed()),
                         [](const auto& with) { return with.param.name; });

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
  expect_error({"profile", "show", "/no/such/folder"}, 2, "/no/such/folder");
}

}  // namespace
}  // namespace sinew::test
