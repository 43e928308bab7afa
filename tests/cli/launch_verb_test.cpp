// `sinew launch` from outside: what ranks see, how failures end, and that nothing is left behind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "support/program.hpp"

namespace sinew::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> launch(int ranks, const std::string& script,
                                std::vector<std::string> options = {}) {
  std::vector<std::string> words{SINEW_PROGRAM, "launch", "-n", std::to_string(ranks)};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "sh", "-c", script});
  return words;
}

bool runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');
  return name_end != std::string::npos && text[name_end + 2] != 'Z';
}

// Death by signal takes a moment, so this waits; a process that stays is the failure.
bool all_gone(const std::set<pid_t>& pids) {
  for (int tries = 0; tries < 1000; ++tries) {
    bool any = false;
    for (const pid_t pid : pids) any |= runs(pid);
    if (!any) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

// Numbers after "pid=" anywhere in the output.
std::set<pid_t> pids_in(const std::string& text) {
  std::set<pid_t> pids;
  for (auto at = text.find("pid="); at != std::string::npos; at = text.find("pid=", at + 1))
    pids.insert(std::stoi(text.substr(at + 4)));
  return pids;
}

TEST(Launch, every_rank_finds_its_place_in_the_environment) {
  const auto ran = run(launch(
      3,
      "echo $SINEW_RANK $SINEW_SIZE $SINEW_LOCAL_RANK $SINEW_LOCAL_SIZE $RANK $WORLD_SIZE "
      "$LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR; echo name=$SINEW_RENDEZVOUS port=$MASTER_PORT"));
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::set<std::string> meetings;
  for (int rank = 0; rank < 3; ++rank) {
    const auto place = fmt::format("[{0}] {0} 3 {0} 3 {0} 3 {0} 3 127.0.0.1\n", rank);
    EXPECT_TRUE(has(ran.out, place)) << ran.out;
  }
  for (const auto& line : lines_of(ran.out))
    if (has(line, "name=")) meetings.insert(line.substr(line.find("name=")));
  ASSERT_EQ(meetings.size(), 1U);  // the same for all
  EXPECT_TRUE(has(*meetings.begin(), "name=sinew-"));
  EXPECT_NE(run(launch(1, "echo $SINEW_RENDEZVOUS")).out,
            run(launch(1, "echo $SINEW_RENDEZVOUS")).out);
}

TEST(Launch, ranks_speak_tls_where_that_is_asked_for) {
  EXPECT_EQ(run(launch(1, "echo tls=$SINEW_TLS.")).out, "[0] tls=.\n");
  EXPECT_EQ(run(launch(1, "echo tls=$SINEW_TLS.", {"--tls"})).out, "[0] tls=1.\n");
  const auto ran = run({"env", "SINEW_TRANSPORT=tcp", SINEW_PROGRAM, "launch", "-n", "3", "--tls",
                        "--", SINEW_RANK_PROGRAM, "20"});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_TRUE(has(ran.out, "rank 2 of 3 over tcp: right")) << ran.out;
}

TEST(Launch, ranks_share_a_token_that_is_new_each_time_and_in_no_command_line) {
  const auto ran = run(launch(2,
                              "echo token=$SINEW_TOKEN.; cat /proc/$PPID/cmdline; "
                              "cat /proc/$$/cmdline"));
  const auto begin = ran.out.find("token=") + 6;
  const auto token = ran.out.substr(begin, ran.out.find('.', begin) - begin);
  ASSERT_EQ(token.size(), 64U) << ran.out;
  int shown = 0;
  for (auto at = ran.out.find(token); at != std::string::npos; at = ran.out.find(token, at + 1))
    ++shown;
  EXPECT_EQ(shown, 2) << ran.out;  // once by each rank
  EXPECT_FALSE(has(ran.err, token));
  EXPECT_FALSE(has(run(launch(1, "echo $SINEW_TOKEN")).out, token));
}

TEST(Launch, inside_another_launcher_its_own_ranks_count) {
  auto words = launch(2, "exec " SINEW_RANK_PROGRAM);
  words.insert(words.begin(), {"env", "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1",
                               "PMI_RANK=3", "PMI_SIZE=5", "SLURM_PROCID=7"});
  const auto ran = run(words);
  EXPECT_EQ(ran.status, 0) << ran.out;
  EXPECT_TRUE(has(ran.out, "rank 1 of 2 over shm: right")) << ran.out;
}

TEST(Launch, output_keeps_its_stream_and_lines_stay_whole) {
  const auto ran = run(launch(4,
                              "for i in 1 2 3 4 5 6 7 8; do printf 'aaaa'; printf 'bbbb\\n'; done; "
                              "echo oops >&2; printf 'no end'"));
  const auto lines = lines_of(ran.out);
  EXPECT_EQ(lines.size(), 4U * 9);
  for (const auto& line : lines)
    EXPECT_TRUE(line.substr(4) == "aaaabbbb" || line.substr(4) == "no end") << line;
  EXPECT_EQ(lines_of(ran.err).size(), 4U);
  EXPECT_TRUE(has(ran.err, "[3] oops\n"));
}

TEST(Launch, without_labels_output_passes_as_it_is) {
  EXPECT_EQ(run(launch(1, "printf 'raw\\0text'", {"--no-label"})).out, std::string("raw\0text", 8));
}

TEST(Launch, standard_input_is_rank_0s) {
  const auto ran = run(launch(2, "cat; echo done"), "hello\n");
  EXPECT_TRUE(has(ran.out, "[0] hello\n"));
  EXPECT_FALSE(has(ran.out, "[1] hello\n"));
  EXPECT_TRUE(has(ran.out, "[1] done\n"));
}

TEST(Launch, the_first_failure_gives_the_status_and_ends_the_others) {
  const auto ran =
      run(launch(3, "echo pid=$$; if [ $RANK = 1 ]; then exit 7; fi; exec sleep 1000"));
  EXPECT_EQ(ran.status, 7);
  EXPECT_TRUE(has(ran.err, "rank 1 (pid ")) << ran.err;
  EXPECT_TRUE(has(ran.err, "exited with code 7")) << ran.err;
  EXPECT_TRUE(all_gone(pids_in(ran.out)));
}

TEST(Launch, death_by_signal_is_told_as_a_shell_would) {
  const auto ran = run(launch(2, "if [ $RANK = 0 ]; then kill -KILL $$; fi; exec sleep 1000"));
  EXPECT_EQ(ran.status, 128 + SIGKILL);
  EXPECT_TRUE(has(ran.err, "rank 0")) << ran.err;
  EXPECT_TRUE(has(ran.err, "signal 9")) << ran.err;
}

TEST(Launch, elastic_ranks_that_are_left_go_on_and_one_good_end_is_enough) {
  const auto ran =
      run(launch(3, "[ $SINEW_RANK = 1 ] && kill -9 $$; sleep 0.2; echo here", {"--elastic"}));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "here")) << ran.out;
  EXPECT_TRUE(has(ran.err, "rank 1")) << ran.err;
  EXPECT_TRUE(has(ran.err, "2 go on")) << ran.err;
  EXPECT_EQ(run(launch(3, "exit 7", {"--elastic"})).status, 7) << "nobody ended well";
}

TEST(Launch, who_does_not_heed_the_request_to_end_is_killed) {
  const auto ran = run(launch(2,
                              "trap '' TERM; echo pid=$$; if [ $RANK = 1 ]; then exit 3; fi; "
                              "while true; do sleep 1; done"));
  EXPECT_EQ(ran.status, 3);
  EXPECT_TRUE(all_gone(pids_in(ran.out)));
}

TEST(Launch, children_of_ranks_do_not_outlive_the_launch) {
  const auto ran = run(launch(2, "sleep 1000 & echo pid=$!; setsid sleep 1000 & echo pid=$!"));
  EXPECT_EQ(ran.status, 0);
  const auto pids = pids_in(ran.out);
  EXPECT_EQ(pids.size(), 4U);
  for (const pid_t pid : pids) EXPECT_FALSE(runs(pid));  // at once: the launcher waited for them
}

TEST(Launch, killing_the_launcher_leaves_no_rank_and_no_child_of_one) {
  Program launcher(
      launch(3, "sleep 1000 & echo pid=$!; echo pid=$$; echo ready; wait", {"--no-label"}));
  ASSERT_TRUE(launcher.wait_for("ready", 3));
  ::kill(launcher.pid(), SIGKILL);
  const auto ran = launcher.finish();  // returns once nobody holds the pipe any more
  EXPECT_EQ(ran.status, 128 + SIGKILL);
  const auto pids = pids_in(ran.out);
  EXPECT_EQ(pids.size(), 6U);
  EXPECT_TRUE(all_gone(pids));
}

TEST(Launch, interrupt_ends_all_ranks_with_130_and_terminate_with_143) {
  for (const int number : {SIGINT, SIGTERM}) {
    Program launcher(launch(2, "echo pid=$$; echo ready; exec sleep 1000"));
    ASSERT_TRUE(launcher.wait_for("ready", 2));
    ::kill(launcher.pid(), number);
    const auto ran = launcher.finish();
    EXPECT_EQ(ran.status, 128 + number) << ran.err;
    EXPECT_TRUE(all_gone(pids_in(ran.out)));
  }
}

TEST(Launch, user_signals_reach_every_rank) {
  Program launcher(
      launch(2, "trap 'echo got it; exit 0' USR1; echo ready; while true; do sleep 0.1; done"));
  ASSERT_TRUE(launcher.wait_for("ready", 2));
  ::kill(launcher.pid(), SIGUSR1);
  const auto ran = launcher.finish();
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "[0] got it"));
  EXPECT_TRUE(has(ran.out, "[1] got it"));
}

TEST(Launch, a_timeout_ends_with_124) {
  const auto ran = run(launch(2, "echo pid=$$; exec sleep 1000", {"--timeout", "0.2"}));
  EXPECT_EQ(ran.status, 124);
  EXPECT_TRUE(has(ran.err, "2 of 2 ranks")) << ran.err;
  EXPECT_TRUE(all_gone(pids_in(ran.out)));
}

TEST(Launch, a_program_that_cannot_run_is_named) {
  const auto missing = sinew({"launch", "-n", "3", "no-such-program"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_TRUE(has(missing.err, "cannot run 'no-such-program'")) << missing.err;
  EXPECT_EQ(sinew({"launch", "-n", "1", "/etc/passwd"}).status, 126);
}

TEST(Launch, bad_usage_starts_nothing) {
  EXPECT_EQ(sinew({"launch", "true"}).status, 2);
  EXPECT_EQ(sinew({"launch", "-n", "0", "true"}).status, 2);
  EXPECT_EQ(sinew({"launch", "-n", "-3", "true"}).status, 2);
  EXPECT_EQ(sinew({"launch", "-n", "many", "true"}).status, 2);
  EXPECT_EQ(sinew({"launch", "-n", "2"}).status, 2);
  EXPECT_EQ(sinew({"launch", "-n", "2", "--bind", "cores", "true"}).status, 2);
  const auto typo = sinew({"launch", "-n", "2", "--bnd", "core", "true"});
  EXPECT_EQ(typo.status, 2);
  EXPECT_TRUE(has(typo.err, "--bnd"));
}

TEST(Launch, too_many_ranks_are_refused_and_those_started_are_stopped) {
  const auto ran = run({"sh", "-c",
                        "ulimit -n 40; exec " SINEW_PROGRAM
                        " launch -n 500 -- sh -c 'echo pid=$$; exec sleep 1000'"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(has(ran.err, "Too many open files")) << ran.err;
  EXPECT_TRUE(all_gone(pids_in(ran.out)));
}

TEST(Launch, binds_ranks_to_processors_it_may_use) {
  for (const auto domain : {"core", "l3", "numa", "none"}) {
    const auto ran = run(launch(2, "grep Cpus_allowed_list /proc/self/status", {"--bind", domain}));
    EXPECT_EQ(ran.status, 0) << domain << ran.err;
    EXPECT_EQ(lines_of(ran.out).size(), 2U);
  }
}

TEST(Launch, json_tells_lines_and_ends) {
  const auto ran = run(launch(2, "echo hello; exit $RANK", {"--json"}));
  EXPECT_EQ(ran.status, 1);
  const auto lines = lines_of(ran.out);
  const auto last = nlohmann::json::parse(lines.back());
  EXPECT_EQ(last["exit"], 1);
  EXPECT_EQ(last["ranks"].size(), 2U);
  EXPECT_EQ(nlohmann::json::parse(lines.front())["line"], "hello");
}

}  // namespace
}  // namespace sinew::test
