// Data-parallel training of a learner: the loop, and everything that must be the same on all ranks.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <sinew/communicator.hpp>
#include "train/checkpoint.hpp"
#include "train/dataset.hpp"
#include "train/learner.hpp"
#include "train/optimizer.hpp"
#include "train/reducer.hpp"
#include "train/sampler.hpp"

namespace sinew {

struct TrainOptions {
  std::string model, data;  // names, for checkpoints
  std::uint64_t seed = 1;
  std::size_t batch = 64;      // samples of one worker in one pass
  std::size_t accumulate = 1;  // passes a step
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
  bool measure = true;           // waiting and collectives, at the price of a few clock reads
  Observer* observer = nullptr;  // of all collectives of the steps

  std::uint64_t check_every =
      0;                 // steps after which parameters are compared across ranks; 0: never
  bool evaluate = true;  // at the end

  std::string folder;            // of checkpoints; "": none are written
  std::uint64_t save_every = 0;  // steps; 0: at the end only
  bool resume = false;           // from the last checkpoint in `folder`
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
};

/// Sums of one rank over all its steps.
struct WorkerTotals {
  double batches = 0, samples = 0, seconds = 0;
  double data_s = 0, compute_s = 0, update_s = 0;
  double busy_s = 0, hidden_s = 0, exposed_s = 0, waiting_s = 0;
  double bytes_sent = 0, collectives = 0, items = 0, elements = 0;
  double loss = 0, loss_samples = 0;  // of the last steps
  double peak_bytes = 0;              // of memory
};

struct TrainResult {
  std::uint64_t first_step = 0;  // more than 0 when resumed
  std::uint64_t steps = 0;       // at the end, earlier runs included
  std::uint64_t parameters = 0, buckets = 0;
  double seconds = 0;
  double steady_steps_per_s = 0;  // without the first steps, which warm up; 0 for a short run
  double loss = 0;                // mean over the last steps and all ranks
  bool evaluated = false;
  Score test;  // of the whole test set
  std::vector<WorkerTotals> workers;
  std::vector<std::uint64_t> hashes;  // of each rank's parameters
};

/// All ranks together. Throws Error{mismatch} where ranks would train different things or have come
/// to differ, and Error{invalid_argument} for a checkpoint that does not fit and when the gradient
/// is no number any more.
TrainResult train(Communicator& communicator, Learner& learner, const Data& data,
                  const TrainOptions& options, TrainWatcher& watcher);

}  // namespace sinew
