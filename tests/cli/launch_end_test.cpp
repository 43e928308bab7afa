// The launcher is killed, interrupted or asked to end, at any moment of a job over any transport:
// soon there is nobody, and nothing is left. Counted in a network and folders of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "support/network.hpp"
#include "support/program.hpp"

namespace sinew::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

struct End {
  std::string_view name;
  int signal;
  bool to_all;  // of the launcher's group, as a terminal does it
};
constexpr End kEnds[] = {
    {"kill -9 of the launcher", SIGKILL, false},
    {"Ctrl-C", SIGINT, true},
    {"SIGTERM to the launcher", SIGTERM, false},
};

// Descendants whose parents are gone are ours (see PR_SET_CHILD_SUBREAPER): until there are none.
bool wait_for_all(steady_clock::time_point until) {
  while (true) {
    const pid_t pid = ::waitpid(-1, nullptr, WNOHANG);
    if (pid < 0 && errno == ECHILD) return true;
    if (pid == 0 && steady_clock::now() > until) return false;
    if (pid == 0) std::this_thread::sleep_for(1ms);
  }
}

// "" when all were gone in time; adds the time it took.
std::string end_one(const End& end, const std::string& transport, std::mt19937& random,
                    std::vector<double>& took_ms) {
  const int ranks = 2 + static_cast<int>(random() % 7);
  Program launcher({"setsid", SINEW_PROGRAM, "launch", "-n", std::to_string(ranks), "--", "env",
                    "SINEW_TRANSPORT=" + transport, SINEW_RANK_PROGRAM, "20", "forever"});
  // Half of them while ranks are started and join, half in full run.
  const bool running = random() % 2 == 0;
  if (running && !launcher.wait_for(": right", ranks)) return "the job did not begin";
  while (::getpgid(launcher.pid()) != launcher.pid()) std::this_thread::sleep_for(1ms);  // setsid
  std::this_thread::sleep_for(1ms * (random() % (running ? 20 : 60)));
  const auto begin = steady_clock::now();
  ::kill(end.to_all ? -launcher.pid() : launcher.pid(), end.signal);
  const auto ran = launcher.finish();
  if (!wait_for_all(begin + 10s)) return "processes are left";
  took_ms.push_back(std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count());
  if (ran.status != 128 + end.signal) return fmt::format("status {}: {}", ran.status, ran.err);
  return took_ms.back() < 1000 ? "" : fmt::format("took {:.0f} ms: {}", took_ms.back(), ran.err);
}

// The user's secret may stay: it is there for the next job.
void remove_secret() { std::filesystem::remove_all(fmt::format("/tmp/sinew-{}", ::geteuid())); }

std::string end_many(const End& end, const std::string& transport, int trials) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::unsetenv("XDG_RUNTIME_DIR");
  std::mt19937 random(3);
  std::vector<double> took_ms;
  std::string wrong;
  for (int trial = 0; trial < trials && wrong.empty(); ++trial) {
    wrong = end_one(end, transport, random, took_ms);
    if (!wrong.empty()) wrong = fmt::format("trial {}: {}", trial, wrong);
  }
  remove_secret();
  const auto left = left_behind();
  std::sort(took_ms.begin(), took_ms.end());
  fmt::print(
      "{} over {}: {} trials, all gone after {:.0f} ms (median), {:.0f} ms (max); left: {}\n",
      end.name, transport, took_ms.size(), took_ms.empty() ? 0 : took_ms[took_ms.size() / 2],
      took_ms.empty() ? 0 : took_ms.back(), left.empty() ? "nothing" : left);
  std::fflush(stdout);
  return wrong + left;
}

class LaunchEnd : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Over, LaunchEnd, testing::Values("shm", "tcp", "auto"),
                         [](const auto& transport) { return transport.param; });

TEST_P(LaunchEnd, leaves_nobody_and_nothing_within_a_second) {
  const int trials = std::getenv("SINEW_FULL") != nullptr ? 100 : 10;
  for (const auto& end : kEnds) {
    const auto wrong = in_own_place([&] { return end_many(end, GetParam(), trials); });
    if (wrong.starts_with("skip: ")) GTEST_SKIP() << wrong;
    EXPECT_EQ(wrong, "") << end.name;
  }
}

}  // namespace
}  // namespace sinew::test
