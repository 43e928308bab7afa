#include "torch/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace sinew {
namespace {

using Field = double WorkerTotals::*;

double sum(const TrainResult& result, Field field) {
  double total = 0;
  for (const auto& worker : result.workers) total += worker.*field;
  return total;
}
double mean(const TrainResult& result, Field field) {
  return result.workers.empty() ? 0
                                : sum(result, field) / static_cast<double>(result.workers.size());
}
double ratio(double a, double b) { return b > 0 ? a / b : 0; }

double accuracy(const Score& score) {
  return score.labels == 0
             ? 0
             : 1 - static_cast<double>(score.errors) / static_cast<double>(score.labels);
}
double compression_ratio(const TrainResult& result) {
  return ratio(4 * sum(result, &WorkerTotals::elements), sum(result, &WorkerTotals::bytes_sent));
}

std::string worker_line(std::size_t rank, const WorkerTotals& worker) {
  return fmt::format(
      "{:>6} {:>8.0f} {:>10.1f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>10.1f} {:>8.0f}\n", rank,
      worker.batches, ratio(worker.samples, worker.seconds), worker.compute_s, worker.hidden_s,
      worker.exposed_s, worker.waiting_s, ratio(worker.bytes_sent, worker.seconds) / 1e3,
      worker.peak_bytes / 1e6);
}

}  // namespace

nlohmann::ordered_json summary_json(const TrainCommand& command, const TrainResult& result) {
  std::vector<std::string> hashes;
  for (const auto hash : result.hashes) hashes.push_back(fmt::format("{:016x}", hash));
  const auto run = result.steps - result.first_step;
  nlohmann::ordered_json document{
      {"model", command.train.model},
      {"data", command.train.data},
      {"steps", result.steps},
      {"first_step", result.first_step},
      {"seconds", result.seconds},
      {"steps_per_s", ratio(static_cast<double>(run), result.seconds)},
      {"steady_steps_per_s", result.steady_steps_per_s},
      {"samples_per_s", ratio(sum(result, &WorkerTotals::samples), result.seconds)},
      {"loss", result.loss}};
  if (result.evaluated) {
    document["accuracy"] = accuracy(result.test);
    if (command.info->learns_sequences) document["label_error_rate"] = 1 - accuracy(result.test);
    document["test_loss"] = ratio(result.test.loss, static_cast<double>(result.test.samples));
  }
  document["workers"] = result.workers.size();
  document["parameters"] = result.parameters;
  document["buckets"] = result.buckets;
  document["comm"] = {{"bytes_sent", sum(result, &WorkerTotals::bytes_sent)},
                      {"exposed_s", mean(result, &WorkerTotals::exposed_s)},
                      {"hidden_s", mean(result, &WorkerTotals::hidden_s)},
                      {"waiting_s", mean(result, &WorkerTotals::waiting_s)},
                      {"collectives_per_step",
                       ratio(mean(result, &WorkerTotals::collectives), static_cast<double>(run))}};
  document["compute_s"] = mean(result, &WorkerTotals::compute_s);
  document["compression_ratio"] = compression_ratio(result);
  document["density_mean"] =
      ratio(sum(result, &WorkerTotals::items), sum(result, &WorkerTotals::elements));
  document["parameters_xxh3"] = hashes;
  return document;
}

std::string summary_text(const TrainCommand& command, const TrainResult& result) {
  const auto run = result.steps - result.first_step;
  std::string text = fmt::format(
      "{} on {}: {} steps with {} workers in {:.2f} s, {:.1f} steps/s, {:.0f} samples/s\n",
      command.train.model, command.train.data, run, result.workers.size(), result.seconds,
      ratio(static_cast<double>(run), result.seconds),
      ratio(sum(result, &WorkerTotals::samples), result.seconds));
  text += fmt::format("loss {:.4f}", result.loss);
  if (result.evaluated)
    text += fmt::format(
        ", on {} samples for testing: loss {:.4f}, {} {:.2f} %", result.test.samples,
        ratio(result.test.loss, static_cast<double>(result.test.samples)),
        command.info->learns_sequences ? "label error rate" : "accuracy",
        100 * std::abs(accuracy(result.test) - (command.info->learns_sequences ? 1 : 0)));
  text += fmt::format(
      "\ngradients: {} parameters in {} buckets, {} sent a worker and step ({:.1f}x less than they "
      "are), density {:.4f}\nparameters are the same bits on all workers: {:016x}\n",
      result.parameters, result.buckets,
      human_bytes(static_cast<std::uint64_t>(
          ratio(mean(result, &WorkerTotals::bytes_sent), static_cast<double>(run)))),
      compression_ratio(result),
      ratio(sum(result, &WorkerTotals::items), sum(result, &WorkerTotals::elements)),
      result.hashes.empty() ? 0 : result.hashes.front());
  text +=
      "\nworker  batches  samples/s compute s  hidden s exposed s waiting s  sent KB/s memory MB\n";
  for (std::size_t rank = 0; rank < result.workers.size(); ++rank)
    text += worker_line(rank, result.workers[rank]);
  return text;
}

nlohmann::ordered_json resolved_json(const TrainCommand& command, int workers, int threads) {
  const auto& train = command.train;
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (const auto& stage : train.compression.stages)
    stages.push_back({{"step", stage.step}, {"density", stage.density}});
  return {{"sinew", SINEW_VERSION},
          {"torch", torch_version()},
          {"model", train.model},
          {"data", train.data},
          {"seed", train.seed},
          {"workers", workers},
          {"threads", threads},
          {"transport", command.transport.empty() ? "auto" : command.transport},
          {"steps", train.steps},
          {"epochs", train.epochs},
          {"seconds", train.seconds},
          {"batch", train.batch},
          {"accumulate", train.accumulate},
          {"optimizer",
           {{"kind", train.optimizer.kind},
            {"momentum", train.optimizer.momentum},
            {"weight_decay", train.optimizer.weight_decay}}},
          {"rate",
           {{"rate", train.rate.rate},
            {"schedule", train.rate.schedule},
            {"warmup", train.rate.warmup}}},
          {"clip", train.clip},
          {"compression",
           {{"scheme", train.compression.scheme},
            {"stages", stages},
            {"warmup", train.compression.warmup}}},
          {"bucket_bytes", train.bucket_bytes},
          {"overlap", train.overlap}};
}

}  // namespace sinew
