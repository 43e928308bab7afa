// The processes of one launch. They share a process group led by a guard, a process that does
// nothing but wait: while it lives the group's number cannot be reused, and when the launcher dies,
// even by kill -9, it takes the group with it, children of ranks included.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sinew {

struct Ended {
  int rank;
  pid_t pid;
  int status;  // as waitpid() gives it
};
/// "exited with code 3", "was killed by signal 9 (Killed)".
std::string describe_end(int status);
/// As a shell tells it: the code, or 128 + the signal.
int exit_status(int status);

class RankGroup {
 public:
  /// Starts the guard. `mask` is the signal mask that ranks get.
  explicit RankGroup(const sigset_t& mask);
  /// Kills and reaps whatever is left.
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  /// Starts a rank; `prepare` runs in the child before the program does. Throws Error{system} when
  /// there can be no more processes.
  struct Failure {
    int error;  // errno of the program that could not be run
  };
  std::optional<Failure> start(int rank, char* const* program,
                               const std::function<void()>& prepare);

  void signal(int number) const noexcept;
  /// Ranks that have ended since the last call.
  std::vector<Ended> reap();
  [[nodiscard]] std::size_t running() const noexcept { return pids_.size(); }

 private:
  struct Rank {
    int rank;
    pid_t pid;
  };
  sigset_t mask_;
  pid_t guard_ = -1;
  int lifeline_ = -1;  // the guard reads the other end: closed means that the launcher is gone
  std::vector<Rank> pids_;
};

}  // namespace sinew
