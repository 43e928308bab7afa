// What a run needs to go on where it stopped, into a checkpoint and out of one.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "train/model_memory.hpp"
#include "train/trainer.hpp"

namespace sinew {

class Restart {
 public:
  Restart(Communicator& communicator, const TrainOptions& options, std::size_t global_batch,
          ModelMemory& memory, Optimizer& optimizer, GradientReducer& reducer)
      : communicator_(communicator),
        options_(options),
        global_batch_(global_batch),
        memory_(memory),
        optimizer_(optimizer),
        reducer_(reducer),
        checkpoints_(options.folder) {}

  /// What a save that never came to its end has left.
  void tidy() const { checkpoints_.remove_unfinished(); }
  /// Before `step`. All ranks together; a warning and false where it cannot be written.
  bool save(std::uint64_t step, TrainWatcher& watcher);
  /// The step to go on with. Throws Error{invalid_argument} for a checkpoint that is missing,
  /// damaged or of another run.
  std::uint64_t resume();

 private:
  [[nodiscard]] nlohmann::json identity() const;
  void check_identity(const Snapshot& shared) const;

  Communicator& communicator_;
  const TrainOptions& options_;
  std::size_t global_batch_;
  ModelMemory& memory_;
  Optimizer& optimizer_;
  GradientReducer& reducer_;
  CheckpointFolder checkpoints_;
};

}  // namespace sinew
