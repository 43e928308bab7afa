// One contender's processes as the parent sees them: started, given turns, reported when they die
// or hang, and cleared away.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/launch.hpp"

namespace sinew::bench {

class Group {
 public:
  /// Starts the ranks and waits until all have joined. Throws std::runtime_error with the reason
  /// (and has cleared away what was started).
  Group(std::string name, int ranks, const Launcher& launcher, double deadline_s);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  /// Asks the ranks to leave; those that do not are killed.
  ~Group();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const ControlOwner& control() const noexcept { return control_; }

  /// One turn. False when the contender does not support the case. Throws std::runtime_error with
  /// a story when a rank failed, died or is stuck; the group is then dead, and says so when asked
  /// again.
  bool play(const Command& command, double deadline_s);

 private:
  struct Child {
    pid_t pid = 0;
    std::optional<int> status;  // as waitpid gave it
  };

  void start(const Launcher& launcher, double deadline_s);
  std::string why_not_started(const std::string& problem) const;
  std::string dead_rank(int rank) const;
  std::string stuck_ranks(double deadline_s) const;
  std::string output_tail() const;
  bool reap();
  bool reaped_within(double seconds);
  void kill();

  std::string name_;
  int ranks_;
  ControlOwner control_;
  Fd output_;
  bool dead_ = false;
  std::vector<Child> children_;
  std::vector<Fd> members_;  // by rank
};

}  // namespace sinew::bench
