#include "torch/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "torch/figures.hpp"

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

/// A figure of a worker: its column in tables, and how it is computed.
struct Column {
  std::string_view name;    // in files
  std::string_view header;  // in the table; "": not in it
  double (*value)(const WorkerTotals&);
  int digits;  // kFigures: three of them, however large it is
};
constexpr int kFigures = -1;

constexpr Column kColumns[] = {
    {"worker", "worker", [](const WorkerTotals& w) { return w.worker; }, 0},
    {"batches", "batches", [](const WorkerTotals& w) { return w.batches; }, 0},
    {"samples_per_s", "samples/s",
     [](const WorkerTotals& w) { return ratio(w.samples, w.seconds); }, kFigures},
    {"sent_kb_per_s", "KB/s",
     [](const WorkerTotals& w) { return ratio(w.bytes_sent, w.seconds) / 1e3; }, kFigures},
    {"data_s", "data", [](const WorkerTotals& w) { return w.data_s; }, 2},
    {"compute_s", "compute", [](const WorkerTotals& w) { return w.compute_s; }, 2},
    {"update_s", "", [](const WorkerTotals& w) { return w.update_s; }, 2},
    {"hidden_s", "", [](const WorkerTotals& w) { return w.hidden_s; }, 2},
    {"exposed_s", "exposed", [](const WorkerTotals& w) { return w.exposed_s; }, 2},
    {"waiting_s", "wait", [](const WorkerTotals& w) { return w.waiting_s; }, 2},
    {"transfer_s", "move", [](const WorkerTotals& w) { return w.transfer_s(); }, 2},
    {"compress_s", "pack", [](const WorkerTotals& w) { return w.compress_s; }, 2},
    {"compression_ratio", "ratio",
     [](const WorkerTotals& w) { return ratio(4 * w.elements, w.bytes_sent); }, 1},
    {"resident_mb", "MB", [](const WorkerTotals& w) { return w.peak_bytes / 1e6; }, 0},
};

std::string cell(const Column& column, const WorkerTotals& worker) {
  const auto value = column.value(worker);
  return column.digits == kFigures ? three_figures(value)
                                   : fmt::format("{:.{}f}", value, column.digits);
}

/// (largest - smallest) / mean of a column.
double spread_of(const TrainResult& result, const Column& column) {
  double least = 0, most = 0, sum = 0;
  for (std::size_t i = 0; i < result.workers.size(); ++i) {
    const auto value = column.value(result.workers[i]);
    least = i == 0 ? value : std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
  return ratio((most - least) * static_cast<double>(result.workers.size()), sum);
}

std::string workers_table(const TrainResult& result) {
  std::vector<std::vector<std::string>> rows(result.workers.size() + 2);
  for (const auto& column : kColumns) {
    if (column.header.empty()) continue;
    rows[0].emplace_back(column.header);
    for (std::size_t i = 0; i < result.workers.size(); ++i)
      rows[i + 1].push_back(cell(column, result.workers[i]));
    rows.back().push_back(
        rows[0].size() == 1 ? "spread" : fmt::format("{:.0f}%", 100 * spread_of(result, column)));
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::size_t width = 0;
      for (const auto& other : rows) width = std::max(width, other[i].size());
      text += fmt::format("{}{:>{}}", i == 0 ? "" : " ", row[i], width);
    }
    text += '\n';
  }
  return text;
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
  if (result.server) document["comm"]["server_bytes_sent"] = result.server->bytes_sent;
  for (const auto& [worker, step] : result.lost)
    document["lost"].push_back({{"worker", worker}, {"step", step}});
  if (result.interrupted) document["interrupted"] = true;
  return document;
}

nlohmann::ordered_json workers_json(const TrainResult& result) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& worker : result.workers) {
    auto& row = rows.emplace_back();
    for (const auto& column : kColumns) row[std::string(column.name)] = column.value(worker);
  }
  return rows;
}

std::string workers_csv(const TrainResult& result) {
  std::string text;
  for (const auto& column : kColumns)
    text += fmt::format("{}{}", text.empty() ? "" : ",", column.name);
  for (const auto& worker : result.workers) {
    text += '\n';
    for (const auto& column : kColumns)
      text += fmt::format("{}{}", &column == kColumns ? "" : ",", column.value(worker));
  }
  return text + "\n";
}

std::string summary_text(const TrainCommand& command, const TrainResult& result) {
  const auto run = result.steps - result.first_step;
  std::string text =
      fmt::format("{} on {}: {} steps with {} workers in {:.2f} s,\n{} steps/s, {} samples/s\n",
                  command.train.model, command.train.data, run, result.workers.size(),
                  result.seconds, three_figures(ratio(static_cast<double>(run), result.seconds)),
                  three_figures(ratio(sum(result, &WorkerTotals::samples), result.seconds)));
  text += fmt::format("loss {:.4f}", result.loss);
  if (result.evaluated)
    text += fmt::format(
        "; on {} samples for testing: loss {:.4f}, {} {:.2f} %", result.test.samples,
        ratio(result.test.loss, static_cast<double>(result.test.samples)),
        command.info->learns_sequences ? "label error rate" : "accuracy",
        100 * std::abs(accuracy(result.test) - (command.info->learns_sequences ? 1 : 0)));
  text += fmt::format(
      "\ngradients: {} parameters in {} {}, {} sent a worker and step\n"
      "({:.1f}x less than they are), density {:.4f}\n"
      "parameters are the same bits on all workers: {:016x}\n",
      result.parameters, result.buckets, result.buckets == 1 ? "bucket" : "buckets",
      human_bytes(static_cast<std::uint64_t>(
          ratio(mean(result, &WorkerTotals::bytes_sent), static_cast<double>(run)))),
      compression_ratio(result),
      ratio(sum(result, &WorkerTotals::items), sum(result, &WorkerTotals::elements)),
      result.hashes.empty() ? 0 : result.hashes.front());
  for (const auto& [worker, step] : result.lost)
    text +=
        fmt::format("worker {} was lost; step {} and all after it went without\n", worker, step);
  text += "\nseconds, by worker:\n" + workers_table(result);
  return text;
}

nlohmann::ordered_json resolved_json(const TrainCommand& command, int workers, int threads) {
  const auto& train = command.train;
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (const auto& stage : train.compression.stages)
    stages.push_back({{"step", stage.step}, {"density", stage.density}});
  return {{"command", command.line},
          {"sinew", SINEW_VERSION},
          {"torch", torch_version()},
          {"model", train.model},
          {"data", train.data},
          {"seed", train.seed},
          {"precision", command.model.precision},
          {"workers", workers},
          {"threads", threads},
          {"transport", command.transport.empty() ? "auto" : command.transport},
          {"steps", train.steps},
          {"epochs", train.epochs},
          {"seconds", train.seconds},
          {"batch", train.batch},
          {"accumulate", train.accumulate},
          {"global_batch", train.global_batch > 0 ? train.global_batch
                                                  : train.batch * train.accumulate *
                                                        static_cast<std::size_t>(workers)},
          {"mode", command.serves ? "server" : "allreduce"},
          {"stale", train.stale},
          {"elastic", train.elastic},
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
