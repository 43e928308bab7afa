// The workers there are, by the numbers they began with, and how those who are left come together
// again when one is gone.
#pragma once

#include <chrono>
#include <vector>

#include <sinew/communicator.hpp>
#include <sinew/error.hpp>

namespace sinew {

class WorkerGroup {
 public:
  explicit WorkerGroup(Communicator& communicator);

  /// Number of this worker when the run began.
  [[nodiscard]] int me() const noexcept {
    return members_[static_cast<std::size_t>(communicator_.rank())];
  }

  /// How far this worker has come.
  struct Progress {
    std::uint64_t steps = 0;
    bool is_prepared = false;  // for the first step
  };
  /// What the survivors of a failure know together.
  struct Rejoined {
    std::vector<int> lost;     // numbers of the workers that are gone
    std::uint64_t steps = 0;   // the most that any of them has taken
    bool all_prepared = true;  // none of them is still on its way to the first step
    std::string story;         // what happened, as the lowest of them saw it
  };
  /// Replaces the communicator by one of those who are left. All survivors together; another death
  /// meanwhile is survived too. Throws Error{expelled} or Error{minority} where it is not for this
  /// rank to go on.
  Rejoined rejoin(Progress mine, const Error& error);

 private:
  Communicator& communicator_;
  std::vector<int> members_;  // by rank
};

/// Whether an error means that a worker is gone, or gave no sign of life.
bool is_loss(const Error& error) noexcept;

}  // namespace sinew
