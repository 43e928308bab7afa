// The profiler in real MPI programs, under every MPI that is installed.
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "profiled.hpp"

namespace sinew::test {
namespace {

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
    const auto expected = folder_ + "-by-hand";
    std::filesystem::create_directory(expected);
    const auto ran = profile_command(ranks, {GetParam().classes, "/tmp", expected});
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::string written;
    for (int rank = 0; rank < ranks; ++rank)
      written += text_of(expected + "/" + std::to_string(rank));
    std::filesystem::remove_all(expected);
    const auto by_hand = counted_by_hand(written);
    ASSERT_GT(by_hand.size(), 80U) << ran.out << ran.err;
    const auto profile = shown();
    expect_counted(profile, by_hand);
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

/// 100 ends in the long form of the tests.
int trials() { return std::getenv("SINEW_FULL") != nullptr ? 25 : 1; }

TEST_P(Profiler, a_rank_that_dies_leaves_all_its_calls) {
  std::mt19937 random(20);
  for (int trial = 0; trial < trials(); ++trial)
    for (const std::string how : {"abort", "exit", "segfault"}) {
      std::filesystem::remove_all(folder_);
      const auto calls = random() % 20000 + 1;
      const auto bare = run({GetParam().calls, how, "1"});
      EXPECT_NE(bare.status, 0);
      const auto ran = profile(1, {how, std::to_string(calls)});
      EXPECT_EQ(ran.status, bare.status) << how << ": " << ran.err;
      const auto profile = shown();
      EXPECT_EQ(routine(profile, "MPI_Allreduce")["calls"], calls) << how;
      EXPECT_EQ(profile["ranks"][0]["ended_in_order"], false) << how;
      EXPECT_FALSE(profile["warnings"].empty());
    }
}

TEST_P(Profiler, killed_at_any_moment_it_has_all_calls_but_perhaps_the_last) {
  std::mt19937 random(21);
  for (int trial = 0; trial < trials(); ++trial) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    const auto count = folder_ + "/count";
    Program program({"env", "LD_PRELOAD=" SINEW_PROFILE_LIBRARY, "SINEW_PROFILE_DIR=" + folder_,
                     GetParam().calls, "forever", count});
    ASSERT_TRUE(program.wait_for("running"));
    ::usleep(static_cast<useconds_t>(random() % 30'000));
    ::kill(program.pid(), SIGKILL);
    EXPECT_EQ(program.finish().status, 137);
    std::uint64_t done = 0;
    std::ifstream(count, std::ios::binary).read(reinterpret_cast<char*>(&done), sizeof done);
    ASSERT_GE(done, 10U);
    const auto profile = shown();
    const auto seen = routine(profile, "MPI_Allreduce")["calls"].get<std::uint64_t>();
    EXPECT_GE(seen, done);
    EXPECT_LE(seen, done + 1) << "the last call may not have been counted by the program";
    EXPECT_EQ(profile["ranks"][0]["ended_in_order"], false);
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

TEST_P(Profiler, names_a_late_sender_finds_a_loop_follows_a_request_and_keeps_regions) {
  const auto ran = profile(2, {"late", "50"}, {"--label", "tag=5:VALUE"});
  EXPECT_TRUE(has(ran.out, "late sender: rank 1 let rank 0 wait")) << ran.out;
  EXPECT_TRUE(has(ran.out, "5 x Allreduce 8 B")) << ran.out;
  const auto profile = shown();
  ASSERT_EQ(profile["late_senders"].size(), 1U);
  const auto& late = profile["late_senders"][0];
  EXPECT_EQ(late["sender"], 1);
  EXPECT_EQ(late["receiver"], 0);
  EXPECT_EQ(late["receives"], 10);
  EXPECT_GT(late["waited_ns"].get<double>(), 0.15e9);
  const auto& phase = profile["phases"].back();
  EXPECT_EQ(phase["calls"], 8);
  EXPECT_GE(phase["rounds"], 48);
  EXPECT_GT(profile["own_cost_ns"].get<double>(), 1);
  EXPECT_LT(profile["own_cost_ns"].get<double>(), 10'000);
  for (const auto& row : profile["rows"]) {
    const bool is_labelled = row.value("label", "") == "VALUE";
    const auto region = row.value("region", "");
    EXPECT_TRUE(row["routine"] != "MPI_Recv" || is_labelled) << row;
    EXPECT_TRUE(row["routine"] != "MPI_Allreduce" || region == "1") << row;
    EXPECT_TRUE(row["routine"] != "MPI_Barrier" || region.empty()) << row;
  }
  const auto followed = routine(profile, "MPI_Irecv");
  EXPECT_GT(followed["in_flight_ns"].get<double>(), 45e6)
      << "posted 50 ms before it was waited for";
  EXPECT_LT(followed["blocked_ns"].get<double>(), 0.5 * followed["in_flight_ns"].get<double>());
}

TEST_P(Profiler, both_fortran_bindings_are_counted_once) {
  const auto compiler = "mpif90." + GetParam().name;
  if (run({"which", compiler}).status != 0) GTEST_SKIP() << "no " << compiler;
  for (const std::string binding : {"-UF08", "-DF08"}) {
    const auto program = folder_ + "/fortran" + binding;
    const auto built = run({compiler, "-cpp", binding, "-J", folder_, "-o", program,
                            SINEW_SOURCE_DIR "/tests/programs/mpi_calls.f90"});
    ASSERT_EQ(built.status, 0) << built.err;
    auto command = launch(GetParam(), 2, {program});
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

INSTANTIATE_TEST_SUITE_P(Mpis, Profiler, testing::ValuesIn(installed()),
                         [](const auto& with) { return with.param.name; });

}  // namespace
}  // namespace sinew::test
