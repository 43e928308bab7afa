#include "torch/prometheus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace sinew {
namespace {

struct Gauge {
  std::string_view name, help;
};

std::string head(const Gauge& gauge) {
  return fmt::format("# HELP sinew_train_{0} {1}\n# TYPE sinew_train_{0} gauge\n", gauge.name,
                     gauge.help);
}

std::string one(const Gauge& gauge, double value) {
  return head(gauge) + fmt::format("sinew_train_{} {}\n", gauge.name, value);
}

constexpr Gauge kSteps{"steps", "Steps taken."}, kWorkers{"workers", "Workers there are."},
    kLost{"workers_lost", "Workers that the others went on without."},
    kLoss{"loss", "Mean loss of the last samples."},
    kRate{"samples_per_second", "Samples of all workers, a second."},
    kAccuracy{"accuracy", "Share of the samples for testing that are right."};

}  // namespace

std::string prometheus_text(const StepRecord& record, const StepRecord& since, std::uint64_t steps,
                            double seconds, int workers) {
  const auto samples = static_cast<double>(since.score.samples);
  const auto count = static_cast<double>(std::max<std::uint64_t>(1, steps));
  const auto& c = since.communication;
  const auto a_step = [&](std::uint64_t ns) { return static_cast<double>(ns) / 1e9 / count; };
  return one(kSteps, static_cast<double>(record.step + 1)) + one(kWorkers, workers) +
         one(kLoss, since.score.loss / std::max(1.0, samples)) +
         one(kRate, samples * workers / std::max(1e-9, seconds)) +
         one({"step_compute_seconds", "Computing, a step of rank 0."}, a_step(since.compute_ns)) +
         one({"step_hidden_seconds", "Communication behind computing, a step of rank 0."},
             a_step(c.hidden_ns)) +
         one({"step_exposed_seconds", "Communication after computing, a step of rank 0."},
             a_step(c.exposed_ns)) +
         one({"step_sent_bytes", "Bytes that rank 0 sent, a step."},
             static_cast<double>(c.bytes_sent) / count) +
         one({"step_dense_bytes", "Bytes of its gradients, a step."},
             static_cast<double>(c.elements * sizeof(float)) / count);
}

std::string prometheus_text(const TrainResult& result) {
  double samples = 0;
  for (const auto& worker : result.workers) samples += worker.samples;
  auto text = one(kSteps, static_cast<double>(result.steps)) +
              one(kWorkers, static_cast<double>(result.workers.size())) +
              one(kLost, static_cast<double>(result.lost.size())) + one(kLoss, result.loss) +
              one(kRate, samples / std::max(1e-9, result.seconds));
  if (result.evaluated && result.test.labels > 0)
    text += one(kAccuracy, 1 - static_cast<double>(result.test.errors) /
                                   static_cast<double>(result.test.labels));
  constexpr std::pair<Gauge, double WorkerTotals::*> kFields[] = {
      {{"worker_batches", "Batches learned from."}, &WorkerTotals::batches},
      {{"worker_data_seconds", "Waiting for samples."}, &WorkerTotals::data_s},
      {{"worker_compute_seconds", "Computing."}, &WorkerTotals::compute_s},
      {{"worker_hidden_seconds", "Communication behind computing."}, &WorkerTotals::hidden_s},
      {{"worker_exposed_seconds", "Communication after computing."}, &WorkerTotals::exposed_s},
      {{"worker_waiting_seconds", "Of communication, waiting."}, &WorkerTotals::waiting_s},
      {{"worker_compress_seconds", "Of communication, compressing."}, &WorkerTotals::compress_s},
      {{"worker_sent_bytes", "Bytes sent."}, &WorkerTotals::bytes_sent},
      {{"worker_resident_bytes", "Most memory at a time."}, &WorkerTotals::peak_bytes}};
  for (const auto& [gauge, field] : kFields) {
    text += head(gauge);
    for (const auto& worker : result.workers)
      text += fmt::format("sinew_train_{}{{worker=\"{:.0f}\"}} {}\n", gauge.name, worker.worker,
                          worker.*field);
  }
  return text;
}

bool write_prometheus(const std::string& path, const std::string& text) {
  const auto beside = path + ".part";
  {
    std::ofstream file(beside);
    file << text << std::flush;
    if (!file) return false;
  }
  return std::rename(beside.c_str(), path.c_str()) == 0;
}

}  // namespace sinew
