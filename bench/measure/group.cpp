#include "measure/group.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <thread>

namespace sinew::bench {
namespace {

constexpr std::uint64_t kLookNs = 50'000'000;  // how often death is looked for while waiting
constexpr double kLeaveS = 5.0;                // for ranks that were asked to leave
constexpr double kGraceS = 2.0;                // for a launcher to notice that its ranks are gone

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  return "exited with status " + std::to_string(WEXITSTATUS(status));
}

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", seconds);
  return text.data();
}

class Countdown {
 public:
  explicit Countdown(double seconds)
      : end_ns_(now_ns() + static_cast<std::uint64_t>(seconds * 1e9)) {}
  [[nodiscard]] bool over() const noexcept { return now_ns() >= end_ns_; }

 private:
  std::uint64_t end_ns_;
};

bool turn_over(RankState state) {
  return state == RankState::done || state == RankState::unsupported;
}

}  // namespace

Group::Group(std::string name, int ranks, const Launcher& launcher, double deadline_s)
    : name_(std::move(name)),
      ranks_(ranks),
      control_(ranks),
      output_(make_memfd("sinew-bench-output")) {
  try {
    start(launcher, deadline_s);
  } catch (...) {
    kill();
    throw;
  }
}

Group::~Group() {
  control_.dismiss();
  if (!reaped_within(kLeaveS)) kill();
}

void Group::start(const Launcher& launcher, double deadline_s) {
  std::vector<pid_t> pids;
  const Launch launch{.control = control_.path(), .ranks = ranks_, .output_fd = output_.get()};
  try {
    launcher(launch, pids);
  } catch (...) {
    for (const pid_t pid : pids) children_.push_back({.pid = pid, .status = {}});
    throw;
  }
  for (const pid_t pid : pids) children_.push_back({.pid = pid, .status = {}});
  members_.resize(static_cast<std::size_t>(ranks_));
  const Countdown deadline(deadline_s);
  while (true) {
    int joined = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      auto& member = members_[static_cast<std::size_t>(rank)];
      if (!member.valid() && control_.pid(rank) != 0) member = open_pidfd(control_.pid(rank));
      joined += member.valid() ? 1 : 0;
    }
    if (joined == ranks_) return;
    reap();
    for (const auto& child : children_) {
      if (child.status) throw std::runtime_error(why_not_started(how_it_ended(*child.status)));
    }
    if (deadline.over()) {
      throw std::runtime_error(why_not_started(std::to_string(joined) + " of " +
                                               std::to_string(ranks_) + " ranks came within " +
                                               seconds_text(deadline_s)));
    }
    control_.wait_for_news(kLookNs);
  }
}

bool Group::play(const Command& command, double deadline_s) {
  if (dead_) throw std::runtime_error("its ranks failed before");
  control_.post(command);
  const std::string where =
      " in " + describe(command.what) + ", round " + std::to_string(command.round + 1);
  const auto fail = [&](const std::string& story) {
    kill();
    dead_ = true;
    throw std::runtime_error(story);
  };
  const Countdown deadline(deadline_s);
  while (true) {
    // Deaths before states: a rank that reported why it fails is not merely dead.
    int dead = -1;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (has_ended(members_[static_cast<std::size_t>(rank)])) dead = rank;
    }
    int over = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      const RankState state = control_.state(rank);
      if (state == RankState::failed) {
        fail("rank " + std::to_string(rank) + " failed" + where + ": " + control_.message(rank));
      }
      over += turn_over(state) ? 1 : 0;
    }
    if (over == ranks_) return control_.state(0) == RankState::done;
    if (dead >= 0) {
      reap();
      fail(dead_rank(dead) + where + output_tail());
    }
    if (deadline.over()) fail(stuck_ranks(deadline_s) + where + output_tail());
    control_.wait_for_news(kLookNs);
  }
}

std::string Group::why_not_started(const std::string& problem) const {
  return "did not start: " + problem + output_tail();
}

std::string Group::dead_rank(int rank) const {
  std::string story =
      "rank " + std::to_string(rank) + " (pid " + std::to_string(control_.pid(rank)) + ") died";
  for (const auto& child : children_) {
    if (child.pid == control_.pid(rank) && child.status) {
      story += ", " + how_it_ended(*child.status) + ",";
    }
  }
  return story;
}

std::string Group::stuck_ranks(double deadline_s) const {
  std::string who;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!turn_over(control_.state(rank))) who += (who.empty() ? "" : ", ") + std::to_string(rank);
  }
  return "not finished after " + seconds_text(deadline_s) + " (ranks " + who + " of " +
         std::to_string(ranks_) + " still running)";
}

std::string Group::output_tail() const {
  constexpr off_t kTailBytes = 600;
  struct stat status {};
  if (::fstat(output_.get(), &status) != 0 || status.st_size == 0) return "";
  const off_t from = std::max<off_t>(0, status.st_size - kTailBytes);
  std::string tail(static_cast<std::size_t>(status.st_size - from), '\0');
  const ssize_t got = ::pread(output_.get(), tail.data(), tail.size(), from);
  tail.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return "; it said:\n" + tail;
}

/// True when no child is left.
bool Group::reap() {
  for (auto& child : children_) {
    int status = 0;
    if (!child.status && ::waitpid(child.pid, &status, WNOHANG) == child.pid) child.status = status;
  }
  return std::ranges::all_of(children_,
                             [](const Child& child) { return child.status.has_value(); });
}

bool Group::reaped_within(double seconds) {
  for (const Countdown patience(seconds); !reap();) {
    if (patience.over()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// Ranks first: a launcher that sees them gone clears its own files away and ends by itself.
void Group::kill() {
  for (const auto& member : members_) send_signal(member, SIGKILL);
  if (std::ranges::any_of(members_, &Fd::valid) && reaped_within(kGraceS)) return;
  const auto signal_children = [&](int signal) {
    for (const auto& child : children_) {
      if (!child.status && ::kill(-child.pid, signal) != 0) ::kill(child.pid, signal);
    }
  };
  signal_children(SIGTERM);
  if (reaped_within(kGraceS)) return;
  signal_children(SIGKILL);
  for (auto& child : children_) {
    int status = 0;
    if (!child.status && ::waitpid(child.pid, &status, 0) == child.pid) child.status = status;
  }
}

}  // namespace sinew::bench
