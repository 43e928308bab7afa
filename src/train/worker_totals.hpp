// What one worker did in all its steps, as sums; and those of all workers together.
#pragma once

#include <cstdint>
#include <vector>

#include <sinew/communicator.hpp>

namespace sinew {

struct StepRecord;

/// Only numbers of one type, so that it travels as it is.
struct WorkerTotals {
  double worker = 0;  // its number when the run began
  double batches = 0, samples = 0, seconds = 0;
  double data_s = 0, compute_s = 0, update_s = 0;
  double busy_s = 0, hidden_s = 0, exposed_s = 0, waiting_s = 0, compress_s = 0;
  double bytes_sent = 0, collectives = 0, items = 0, elements = 0;
  double loss = 0, loss_samples = 0;  // of the last steps
  double peak_bytes = 0;              // of memory

  void add(const StepRecord& record);
  void measure_memory();
  /// Moving bytes: what is left of communication without waiting and compressing.
  [[nodiscard]] double transfer_s() const noexcept;
};

/// Those of all ranks, by rank.
std::vector<WorkerTotals> gather(Communicator& communicator, const WorkerTotals& mine);

/// How far the workers are apart in one figure: (largest - smallest) / mean; 0 where all are 0.
double spread(const std::vector<WorkerTotals>& workers, double WorkerTotals::*field);

}  // namespace sinew
