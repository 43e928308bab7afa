#include "cli/launch_group.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <sinew/error.hpp>

namespace sinew {
namespace {

[[noreturn]] void keep_guard(int lifeline) {
  ::setpgid(0, 0);
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);  // only SIGKILL ends the guard
  // It holds nothing open but the lifeline, so that no reader of our output waits for it.
  ::dup2(lifeline, 0);
  ::close_range(1, ~0U, 0);
  char nothing = 0;
  while (::read(0, &nothing, 1) < 0 && errno == EINTR) {
  }
  ::kill(0, SIGKILL);  // the group, itself included
  ::_exit(0);
}

std::string process_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format(" (a user may have {} processes here: ulimit -u)", limit.rlim_cur);
}

// Children of this process, those adopted from ranks included.
std::vector<pid_t> children() {
  std::ifstream list(fmt::format("/proc/self/task/{}/children", ::getpid()));
  std::vector<pid_t> pids;
  for (pid_t pid = 0; list >> pid;) pids.push_back(pid);
  return pids;
}

}  // namespace

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       ::strsignal(WTERMSIG(status)));
  return fmt::format("exited with code {}", WEXITSTATUS(status));
}

int exit_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

RankGroup::RankGroup(const sigset_t& mask) : mask_(mask) {
  // Orphans of ranks become our children, so that they can be found and ended.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(Errc::system, fmt::format("cannot open a pipe: {}", std::strerror(errno)));
  guard_ = ::fork();
  if (guard_ == 0) {
    ::close(ends[1]);
    keep_guard(ends[0]);
  }
  const int error = errno;
  ::close(ends[0]);
  lifeline_ = ends[1];
  if (guard_ < 0) {
    ::close(lifeline_);
    throw Error(Errc::system, fmt::format("cannot start any process: {}{}", std::strerror(error),
                                          process_limit()));
  }
  ::setpgid(guard_, guard_);  // here as well as there: whoever comes first
}

RankGroup::~RankGroup() {
  ::kill(-guard_, SIGKILL);
  // Those who left the group show up as our children as soon as their parents are dead.
  for (auto left = children(); !left.empty(); left = children()) {
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    if (::waitpid(-1, nullptr, 0) < 0 && errno == ECHILD) break;
  }
  ::close(lifeline_);
}

std::optional<RankGroup::Failure> RankGroup::start(int rank, char* const* program,
                                                   const std::function<void()>& prepare) {
  std::array<int, 2> report{};  // closed by a successful exec; otherwise carries errno
  if (::pipe2(report.data(), O_CLOEXEC) != 0)
    throw Error(Errc::system, fmt::format("cannot open a pipe: {}", std::strerror(errno)));
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launcher) ::_exit(1);  // it was gone before the line above took effect
    ::setpgid(0, guard_);
    prepare();
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
    ::execvp(program[0], program);
    const int error = errno;
    if (::write(report[1], &error, sizeof error) < 0) ::_exit(126);
    ::_exit(127);
  }
  const int fork_error = errno;
  ::close(report[1]);
  if (pid < 0) {
    ::close(report[0]);
    throw Error(Errc::system,
                fmt::format("rank {} cannot be started: {}{}; those before it are stopped", rank,
                            std::strerror(fork_error), process_limit()));
  }
  ::setpgid(pid, guard_);
  pids_.push_back({rank, pid});
  int error = 0;
  ssize_t got = 0;
  do got = ::read(report[0], &error, sizeof error);
  while (got < 0 && errno == EINTR);
  ::close(report[0]);
  if (got == sizeof error) return Failure{error};
  return {};
}

void RankGroup::signal(int number) const noexcept { ::kill(-guard_, number); }

std::vector<Ended> RankGroup::reap() {
  std::vector<Ended> ended;
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto at =
        std::find_if(pids_.begin(), pids_.end(), [&](const Rank& r) { return r.pid == pid; });
    if (at == pids_.end()) continue;  // the guard, or an adopted orphan
    ended.push_back({at->rank, pid, status});
    pids_.erase(at);
  }
  return ended;
}

}  // namespace sinew
