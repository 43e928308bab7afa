#include "train/worker_totals.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "train/trainer.hpp"

namespace sinew {
namespace {

double in_seconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace

void WorkerTotals::add(const StepRecord& record) {
  const auto& c = record.communication;
  batches += record.score.samples > 0 ? 1 : 0;
  samples += static_cast<double>(record.score.samples);
  seconds += in_seconds(record.total_ns);
  data_s += in_seconds(record.data_ns);
  compute_s += in_seconds(record.compute_ns);
  update_s += in_seconds(record.update_ns);
  busy_s += in_seconds(c.busy_ns);
  hidden_s += in_seconds(c.hidden_ns);
  exposed_s += in_seconds(c.exposed_ns);
  waiting_s += in_seconds(c.waiting_ns);
  compress_s += in_seconds(c.compress_ns);
  bytes_sent += static_cast<double>(c.bytes_sent);
  collectives += static_cast<double>(c.collectives);
  items += static_cast<double>(c.items);
  elements += static_cast<double>(c.elements);
}

void WorkerTotals::measure_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024;
}

double WorkerTotals::transfer_s() const noexcept {
  return std::max(0.0, busy_s - waiting_s - compress_s);
}

std::vector<WorkerTotals> gather(Communicator& communicator, const WorkerTotals& mine) {
  constexpr auto kFields = sizeof(WorkerTotals) / sizeof(double);
  static_assert(sizeof(WorkerTotals) == kFields * sizeof(double));
  std::vector<WorkerTotals> all(static_cast<std::size_t>(communicator.size()));
  communicator.allgather(std::span<const double>(reinterpret_cast<const double*>(&mine), kFields),
                         std::span(reinterpret_cast<double*>(all.data()), kFields * all.size()));
  return all;
}

double spread(const std::vector<WorkerTotals>& workers, double WorkerTotals::*field) {
  if (workers.empty()) return 0;
  double least = workers.front().*field, most = least, sum = 0;
  for (const auto& worker : workers) {
    least = std::min(least, worker.*field);
    most = std::max(most, worker.*field);
    sum += worker.*field;
  }
  return sum > 0 ? (most - least) * static_cast<double>(workers.size()) / sum : 0;
}

}  // namespace sinew
