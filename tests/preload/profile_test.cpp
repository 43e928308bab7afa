// The profiler in real MPI programs, under every MPI that is installed.
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <random>
#include <set>
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
  std::set<std::string> called;
  for (const auto& program : {GetParam().classes, GetParam().large})
    for (const int ranks : {2, 3}) {
      if (program.empty()) continue;
      std::filesystem::remove_all(folder_);
      const auto expected = folder_ + "-by-hand";
      std::filesystem::create_directory(expected);
      const auto ran = profile_command(ranks, {program, expected, expected});
      EXPECT_EQ(ran.status, 0) << ran.err;
      EXPECT_FALSE(has(ran.out, "broken")) << ran.out;
      std::string written;
      for (int rank = 0; rank < ranks; ++rank)
        written += text_of(expected + "/" + std::to_string(rank));
      std::filesystem::remove_all(expected);
      const auto by_hand = counted_by_hand(written);
      ASSERT_GT(by_hand.size(), 150U) << ran.out << ran.err;
      for (const auto& [name, sums] : by_hand) called.insert(name);
      const auto profile = shown();
      expect_counted(profile, by_hand);
      EXPECT_EQ(profile["ranks"].size(), static_cast<std::size_t>(ranks));
      EXPECT_EQ(profile["warnings"].size(), 0U) << profile["warnings"];
      expect_sums_agree(profile);
    }
  // The other tests call the first four; the rest needs a second job.
  for (const char* const name : {"MPI_Abort", "MPI_Init_thread", "MPI_Pcontrol", "MPI_Comm_accept",
                                 "MPI_Comm_connect", "MPI_Comm_join", "MPI_Comm_spawn",
                                 "MPI_Comm_spawn_multiple", "MPI_Intercomm_create_from_groups"})
    called.insert(name);
  for (const auto& line : lines_of(text_of(GetParam().wrapped)))
    if (const auto at = line.find("\"MPI_"); at != std::string::npos) {
      const auto name = line.substr(at + 1, line.find('"', at + 1) - at - 1);
      EXPECT_EQ(called.count(name), 1U) << name << " is wrapped and never called";
    }
}

TEST_P(Profiler, fifteen_gibibytes_are_fifteen) {
  profile(1, {"big"});
  const auto row = routine(shown(), "MPI_Bcast");
  EXPECT_EQ(row["calls"], 5U);
  EXPECT_EQ(row["sent_bytes"], std::uint64_t{15} << 30U);
}

TEST_P(Profiler, four_threads_lose_no_call) {
  constexpr int kCalls = 2'000'000;
  profile(1, {"threads", std::to_string(kCalls)});
  EXPECT_EQ(routine(shown(), "MPI_Comm_rank")["calls"], 4 * kCalls + 1);
}

/// 100 ends in the long form of the tests.
int trials() { return std::getenv("SINEW_FULL") != nullptr ? 25 : 1; }

struct Described {
  std::uint64_t calls = 0, records = 0;
};

/// What the reader from docs/format-trace.md finds in the one trace in `folder`.
Described read_by_description(const std::string& folder) {
  Described found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".trace") continue;
    const auto said =
        run({SINEW_PYTHON, SINEW_SOURCE_DIR "/tests/trace/read_trace.py", entry.path().string()})
            .out;
    const auto number = [&](const std::string& word) -> std::uint64_t {
      const auto at = said.find(word);
      return at == std::string::npos ? 0 : std::stoull(said.substr(at + word.size()));
    };
    found = {number(" calls: "), number("records: ")};
  }
  return found;
}

TEST_P(Profiler, whatever_ends_it_at_any_moment_all_calls_but_perhaps_the_last_are_there) {
  std::mt19937 random(21);
  const std::map<std::string, int> statuses{
      {"abort", 9}, {"exit", 7}, {"segfault", 139}, {"kill", 137}};
  for (int trial = 0; trial < trials(); ++trial)
    for (const auto& [how, status] : statuses) {
      SCOPED_TRACE(how + ", trial " + std::to_string(trial));
      std::filesystem::remove_all(folder_);
      std::filesystem::create_directory(folder_);
      const auto count = folder_ + "/count";
      const auto microseconds = random() % 30'000;
      std::vector<std::string> words{"env",
                                     "LD_PRELOAD=" SINEW_PROFILE_LIBRARY,
                                     "SINEW_PROFILE_DIR=" + folder_,
                                     "SINEW_PROFILE_BUDGET=1000000000",  // no record is left out
                                     GetParam().calls,
                                     "forever",
                                     count};
      if (how != "kill") words.insert(words.end(), {how, std::to_string(microseconds)});
      Program program(words);
      if (how == "kill") {
        ASSERT_TRUE(program.wait_for("running"));
        ::usleep(static_cast<useconds_t>(microseconds));
        ::kill(program.pid(), SIGKILL);
      }
      EXPECT_EQ(program.finish().status, status);
      std::uint64_t done = 0;
      std::ifstream(count, std::ios::binary).read(reinterpret_cast<char*>(&done), sizeof done);
      const auto [calls, records] = read_by_description(folder_);
      const auto profile = shown();
      const auto row = routine(profile, "MPI_Allreduce");
      const auto seen = row.is_null() ? 0 : row["calls"].get<std::uint64_t>();
      EXPECT_GE(seen, done);
      EXPECT_LE(seen, done + 1) << "the last call may not have been counted by the program";
      EXPECT_GE(calls, done);
      EXPECT_LE(std::max(calls, records) - std::min(calls, records), 1U)
          << "each has its record: " << calls << " and " << records;
      EXPECT_EQ(profile["ranks"][0]["ended_in_order"], false);
      EXPECT_FALSE(profile["warnings"].empty());
    }
}

TEST_P(Profiler, what_a_program_gets_back_is_the_same_with_it) {
  for (const int ranks : {2, 3}) {
    std::map<int, std::string> alone;
    for (const bool profiled : {false, true}) {
      const auto answers = folder_ + (profiled ? "/with" : "/without");
      std::filesystem::create_directories(answers);
      const std::vector<std::string> program{GetParam().answers, answers};
      auto words = launch(GetParam(), ranks, program);
      if (profiled)
        words.insert(words.begin(), {"env", "LD_PRELOAD=" SINEW_PROFILE_LIBRARY,
                                     "SINEW_PROFILE_DIR=" + folder_ + "/traces"});
      const auto ran = run(words);
      EXPECT_EQ(ran.status, 6) << ran.err;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto text = text_of(answers + "/" + std::to_string(rank));
        EXPECT_TRUE(has(text, "after the end 1")) << text;
        if (profiled)
          EXPECT_EQ(text, alone[rank]) << rank;
        else
          alone[rank] = text;
      }
    }
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
  EXPECT_TRUE(has(screen, "no communication: 2 Init")) << screen;
  EXPECT_FALSE(has(screen, "\nComm_rank")) << "no row for what does not communicate";
  const auto row = routine(shown(), "MPI_Allreduce");
  EXPECT_EQ(row["compared_calls"], 100U);
  EXPECT_GT(by_hand[0], 0.9e9) << "50 times 20 ms";
  EXPECT_LT(row["waited_by_rank_ns"][1].get<double>(),
            0.1 * row["waited_by_rank_ns"][0].get<double>() + by_hand[1]);
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
  EXPECT_EQ(phase["rounds_ns"].size(), phase["rounds"]);
  EXPECT_GT(profile["own_cost_ns"].get<double>(), 1);
  EXPECT_LT(profile["own_cost_ns"].get<double>(), 10'000);
  for (const auto& row : profile["rows"]) {
    const bool is_labelled = row.value("label", "") == "VALUE";
    const auto region = row.value("region", "");
    EXPECT_TRUE(row["routine"] != "MPI_Recv" || (is_labelled && row["tag"] == 5)) << row;
    EXPECT_TRUE(row["routine"] != "MPI_Allreduce" || region == "1") << row;
    EXPECT_TRUE(row["routine"] != "MPI_Barrier" || region.empty()) << row;
  }
  const auto followed = routine(profile, "MPI_Irecv");
  EXPECT_GT(followed["in_flight_ns"].get<double>(), 45e6)
      << "posted 50 ms before it was waited for";
  EXPECT_LT(followed["blocked_ns"].get<double>(), 0.5 * followed["in_flight_ns"].get<double>());
}

TEST_P(Profiler, both_fortran_bindings_are_counted_as_counted_by_hand) {
  const auto compiler = "mpif90." + GetParam().name;
  if (run({"which", compiler}).status != 0) GTEST_SKIP() << "no " << compiler;
  for (const std::string binding : {"-UF08", "-DF08"}) {
    const auto program = folder_ + "/fortran" + binding, expected = folder_ + "/expected" + binding;
    const auto built = run({compiler, "-cpp", "-ffree-line-length-none", binding, "-J", folder_,
                            "-o", program, SINEW_SOURCE_DIR "/tests/programs/mpi_calls.f90"});
    ASSERT_EQ(built.status, 0) << built.err;
    std::filesystem::create_directory(expected);
    auto command = launch(GetParam(), 2, {program, expected});
    command.insert(command.begin(), {"profile", "-o", folder_ + "/out" + binding, "--json", "--"});
    const auto ran = sinew(command);
    ASSERT_EQ(ran.status, 0) << ran.err;
    auto by_hand = counted_by_hand(text_of(expected + "/0") + text_of(expected + "/1"));
    ASSERT_GT(by_hand.size(), 35U) << ran.err;
    // Open MPI's Fortran asks for it itself, to convert the three arrays of counts on each rank.
    if (GetParam().name == "openmpi") by_hand["MPI_Comm_size"].calls += 2 * 3;
    SCOPED_TRACE(binding);
    expect_counted(Json::parse(ran.out), by_hand);
  }
}

INSTANTIATE_TEST_SUITE_P(Mpis, Profiler, testing::ValuesIn(installed()),
                         [](const auto& with) { return with.param.name; });

}  // namespace
}  // namespace sinew::test
