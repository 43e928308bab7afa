// Data-parallel training of a learner: the loop, and everything that must be the same on all ranks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sinew/communicator.hpp>
#include "train/checkpoint.hpp"
#include "train/dataset.hpp"
#include "train/learner.hpp"
#include "train/optimizer.hpp"
#include "train/reducer.hpp"
#include "train/sampler.hpp"
#include "train/train_trace.hpp"
#include "train/worker_totals.hpp"

namespace sinew {

struct TrainOptions {
  std::string model, data;  // names, for checkpoints
  std::uint64_t seed = 1;
  std::size_t batch = 64;      // samples of one worker in one pass
  std::size_t accumulate = 1;  // passes a step
  /// Samples of all workers in one step; 0: batch x accumulate x workers.
  std::size_t global_batch = 0;
  // How long: the first of these that is not 0.
  std::uint64_t steps = 0;
  std::uint64_t epochs = 0;
  double seconds = 0;

  OptimizerOptions optimizer{};
  RateOptions rate{};
  double clip = 0;  // the norm that a gradient is cut to; 0: as it is
  CompressionSpec compression{};
  std::uint64_t bucket_bytes = std::uint64_t{25} << 20;
  bool overlap = true;
  bool measure = true;          // waiting and collectives, at the price of a few clock reads
  TrainTrace* trace = nullptr;  // written to from the first collective on; null: none

  std::uint64_t check_every =
      0;                 // steps after which parameters are compared across ranks; 0: never
  bool evaluate = true;  // at the end

  std::string folder;            // of checkpoints; "": none are written
  std::uint64_t save_every = 0;  // steps; 0: at the end only
  bool resume = false;           // from the last checkpoint in `folder`

  /// Where a worker is lost the others go on without it, after a step that all of them have taken
  /// or none. Costs a barrier a step.
  bool elastic = false;
  /// With a server: how many batches a worker may be ahead of another, and after how many seconds
  /// without a gradient it is given up.
  std::uint64_t stale = 0;
  double silent_s = 300;
  /// True when somebody wants the run to end. Rank 0's word counts; it is asked about twice a
  /// second.
  std::function<bool()> wants_end{};
};

/// One step, as this rank saw it.
struct StepRecord {
  std::uint64_t step = 0;   // from 0
  std::uint64_t steps = 0;  // of the whole run, as far as known
  double epoch = 0;
  Score score;  // of this rank's samples
  double rate = 0;
  std::uint64_t data_ns = 0, compute_ns = 0, update_ns = 0, total_ns = 0;
  ReduceReport communication;
};

/// Told what happens, in the thread that trains.
class TrainWatcher {
 public:
  virtual ~TrainWatcher() = default;
  virtual void on_step(const StepRecord& /*record*/) {}
  virtual void on_saved(std::uint64_t /*step*/, const std::string& /*path*/) {}
  virtual void on_warning(std::string_view /*text*/) {}
  /// The group is smaller now, and this rank perhaps another one in it.
  virtual void on_shrunk(int /*rank*/, int /*size*/) {}
};

/// A worker that the others went on without.
struct LostWorker {
  int worker = 0;          // its number when the run began
  std::uint64_t step = 0;  // the first that was taken without it
};

struct TrainResult {
  std::uint64_t first_step = 0;  // more than 0 when resumed
  std::uint64_t steps = 0;       // at the end, earlier runs included
  std::uint64_t parameters = 0, buckets = 0;
  double seconds = 0;
  double steady_steps_per_s = 0;  // without the first steps, which warm up; 0 for a short run
  double loss = 0;                // mean over the last steps and all ranks
  bool evaluated = false;
  Score test;                          // of the whole test set
  std::vector<WorkerTotals> workers;   // those there are at the end
  std::optional<WorkerTotals> server;  // with a server: what it did
  std::vector<LostWorker> lost;
  bool interrupted = false;           // wants_end() ended it
  std::vector<std::uint64_t> hashes;  // of each rank's parameters
};

/// All ranks together. Throws Error{mismatch} where ranks would train different things or have come
/// to differ, and Error{invalid_argument} for a checkpoint that does not fit and when the gradient
/// is no number any more. With `elastic` the communicator is another one after a loss.
TrainResult train(Communicator& communicator, Learner& learner, const Data& data,
                  const TrainOptions& options, TrainWatcher& watcher);

}  // namespace sinew
