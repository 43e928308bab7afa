#include "cli/recorded_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/median.hpp"
#include "model/scheme_phases.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWarmUp = 10;  // first steps, which are slower

/// What one rank wrote about one step, in nanoseconds and bytes.
struct Line {
  double total = 0, data = 0, compute = 0, update = 0, exposed = 0, hidden = 0, sent = 0;
};

nlohmann::json parse_file(const fs::path& path) {
  try {
    return nlohmann::json::parse(read_text(path.string()));
  } catch (const nlohmann::json::exception& error) {
    throw Error(Errc::invalid_argument,
                fmt::format("{}: not the JSON of a run: {}", path.string(), error.what()));
  }
}

template <class T>
T value_of(const nlohmann::json& document, const char* key, const fs::path& path) {
  try {
    return document.at(key).get<T>();
  } catch (const nlohmann::json::exception&) {
    throw Error(Errc::invalid_argument,
                fmt::format("{}: '{}' is missing or of another kind", path.string(), key));
  }
}

// By step: what each rank said. A line that was cut off ends its file.
void read_metrics(const fs::path& path, std::map<std::uint64_t, std::vector<Line>>& steps) {
  std::size_t number = 0;
  const auto text = read_text(path.string());
  for (const auto line : split(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded() && line.data() + line.size() >= text.data() + text.size() - 1) return;
    if (!json.is_object() || !json.contains("step") || !json.contains("compute_ns"))
      throw Error(Errc::invalid_argument,
                  fmt::format("{}:{}: not a line of metrics", path.string(), number));
    const auto get = [&](const char* key) { return json.value(key, 0.0); };
    steps[json["step"].get<std::uint64_t>()].push_back(
        {get("total_ns"), get("data_ns"), get("compute_ns"), get("update_ns"), get("exposed_ns"),
         get("hidden_ns"), get("bytes_sent")});
  }
}

double median_of(const std::vector<Line>& lines, double Line::*field) {
  std::vector<double> values;
  for (const auto& line : lines) values.push_back(line.*field);
  return median(std::move(values));
}

// How much workers differ within a step: standard deviation over mean, the median of all steps.
double spread_of(const std::vector<std::vector<double>>& steps) {
  std::vector<double> spreads;
  for (const auto& computes : steps) {
    if (computes.size() < 2) continue;
    double sum = 0, squares = 0;
    for (const double value : computes) sum += value;
    const double mean = sum / static_cast<double>(computes.size());
    for (const double value : computes) squares += (value - mean) * (value - mean);
    if (mean > 0)
      spreads.push_back(std::sqrt(squares / static_cast<double>(computes.size() - 1)) / mean);
  }
  return median(std::move(spreads));
}

// Buckets are not in the folder, but how they are cut is: the first is closed at a quarter.
std::vector<RunBucket> buckets_of(double bytes, std::size_t count) {
  if (count < 2) return {{bytes, -1}};
  const double each = bytes / (static_cast<double>(count) - 0.75);
  std::vector<RunBucket> buckets(count, RunBucket{each, -1});
  buckets.front().bytes = each / 4;
  return buckets;
}

void take_times(TrainingRun& run, const std::map<std::uint64_t, std::vector<Line>>& steps) {
  std::vector<Line> lines;
  std::vector<std::vector<double>> computes;
  const std::size_t skipped = steps.size() > 2 * kWarmUp ? kWarmUp : 0;
  std::size_t number = 0;
  for (const auto& [step, ranks] : steps) {
    if (number++ < skipped) continue;
    lines.insert(lines.end(), ranks.begin(), ranks.end());
    auto& compute = computes.emplace_back();
    for (const auto& line : ranks) compute.push_back(line.compute);
  }
  const double compute_ms = median_of(lines, &Line::compute) / 1e6;
  run.forward_ms = compute_ms / 3;  // a backward pass is about twice the work
  run.backward_ms = compute_ms - run.forward_ms;
  run.update_ms = median_of(lines, &Line::update) / 1e6;
  run.data_ms = median_of(lines, &Line::data) / 1e6;
  run.spread = spread_of(computes);
  run.measured = {.step_ms = median_of(lines, &Line::total) / 1e6,
                  .exposed_ms = median_of(lines, &Line::exposed) / 1e6,
                  .hidden_ms = median_of(lines, &Line::hidden) / 1e6,
                  .bytes_per_worker = median_of(lines, &Line::sent),
                  .steps = static_cast<int>(computes.size())};
}

}  // namespace

bool is_recorded_run(const std::string& folder) {
  return fs::exists(fs::path(folder) / "run.json");
}

TrainingRun read_recorded_run(const std::string& folder) {
  const fs::path run_path = fs::path(folder) / "run.json",
                 result = fs::path(folder) / "result.json";
  if (!is_recorded_run(folder))
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' is not the folder of a training run: it has no run.json; `sinew "
                            "train -o {}` makes one",
                            folder, folder));
  const auto asked = parse_file(run_path);
  TrainingRun run;
  run.workers = value_of<int>(asked, "workers", run_path);
  run.batch =
      value_of<double>(asked, "batch", run_path) * std::max(1.0, asked.value("accumulate", 1.0));
  run.described_batch = run.batch;
  run.overlap = asked.value("overlap", true) ? 1 : 0;
  run.name = fmt::format("{} on {}", value_of<std::string>(asked, "model", run_path),
                         value_of<std::string>(asked, "data", run_path));
  if (!fs::exists(result))
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' has no result.json: the run has not ended", folder));
  const auto ended = parse_file(result);
  run.steps = value_of<double>(ended, "steps", result);
  run.buckets = buckets_of(4 * value_of<double>(ended, "parameters", result),
                           value_of<std::size_t>(ended, "buckets", result));
  const auto compression = value_of<nlohmann::json>(asked, "compression", run_path);
  run.scheme = compression.value("scheme", "dense");
  if (run.scheme.empty()) run.scheme = "dense";
  if (const auto stages = value_of<nlohmann::json>(compression, "stages", run_path);
      !stages.empty())
    run.density = stages.back().value("density", run.density);
  if (run.density <= 0) run.density = 0.01;
  std::map<std::uint64_t, std::vector<Line>> steps;
  for (int rank = 0; rank < static_cast<int>(run.workers); ++rank) {
    const auto path = fs::path(folder) / fmt::format("metrics-rank-{}.jsonl", rank);
    if (fs::exists(path)) read_metrics(path, steps);
  }
  if (steps.empty())
    throw Error(Errc::invalid_argument, fmt::format("'{}' has no metrics of any rank", folder));
  take_times(run, steps);
  return run;
}

}  // namespace sinew
