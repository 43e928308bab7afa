// What a run needs to go on where it stopped, into a checkpoint and out of one.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "train/model_memory.hpp"
#include "train/trainer.hpp"

namespace sinew {

class Restart {
 public:
  Restart(Communicator& communicator, const TrainOptions& options, ModelMemory& memory,
          Optimizer& optimizer, GradientReducer& reducer)
      : communicator_(communicator),
        options_(options),
        memory_(memory),
        optimizer_(optimizer),
        reducer_(reducer),
        checkpoints_(options.folder) {}

  /// Before `step`. All ranks together; a warning where it cannot be written.
  void save(std::uint64_t step, TrainWatcher& watcher);
  /// The step to go on with. Throws Error{invalid_argument} for a checkpoint that is missing,
  /// damaged or of another run.
  std::uint64_t resume();

 private:
  [[nodiscard]] nlohmann::json identity() const;
  void check_identity(const Snapshot& shared) const;

  Communicator& communicator_;
  const TrainOptions& options_;
  ModelMemory& memory_;
  Optimizer& optimizer_;
  GradientReducer& reducer_;
  CheckpointFolder checkpoints_;
};

}  // namespace sinew
