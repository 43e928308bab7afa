// Training with a server: rank 0 has the samples and the parameters, gives every other rank a batch
// at a time, and moves the parameters by the gradients that come back. For comparison with
// train(), in which all ranks are equal.
#pragma once

#include "train/trainer.hpp"

namespace sinew {

/// All ranks together, at least two; rank 0 serves. With `stale` 0 a step waits for all workers and
/// is the same step as train() takes with them; otherwise every gradient is used when it comes, and
/// no worker is more than `stale` batches ahead of another. Of compression the density counts:
/// workers send their largest elements and keep the rest. Throws what train() throws, and
/// Error{unsupported} for what only train() can.
TrainResult train_with_server(Communicator& communicator, Learner& learner, const Data& data,
                              const TrainOptions& options, TrainWatcher& watcher);

}  // namespace sinew
