#include "cli/run_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "base/wrapped.hpp"
#include "cli/networks.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

std::string time_ms(double ms) { return ms == 0 ? "0" : human_ns(ms * 1e6); }
std::string seconds(double s) {
  if (s >= 1e4) return fmt::format("{:.0f} s", s);
  return s >= 100 ? fmt::format("{:.1f} s", s) : human_ns(s * 1e9);
}
std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }

std::string shortened(std::string text, std::size_t most) {
  if (text.size() > most) text = text.substr(0, most - 2) + "..";
  return text;
}

void print_steps(const RunAnswer& answer, const TrainingRun& run) {
  using enum Align;
  const bool bars = std::any_of(answer.asked.begin(), answer.asked.end(),
                                [](const auto& step) { return step.low_ms != step.high_ms; });
  std::vector<Table::Column> columns{{"workers", right}, {"step", right},    {"sync", right},
                                     {"x first", right}, {"exposed", right}, {"effic.", right}};
  if (run.steps > 0) columns.push_back({"run", right});
  columns.push_back({bars ? "expected" : "algorithm", bars ? right : left});
  Table table(std::move(columns));
  const double first = answer.asked.front().communication_ms;
  for (const auto& step : answer.asked) {
    std::vector<std::string> cells{
        std::to_string(step.workers),
        time_ms(step.step_ms),
        time_ms(step.communication_ms),
        first > 0 ? fmt::format("{:.3f}", step.communication_ms / first) : "-",
        time_ms(step.exposed_ms),
        percent(step.efficiency)};
    if (run.steps > 0) cells.push_back(seconds(step.run_s));
    cells.push_back(bars ? fmt::format("{} .. {}", time_ms(step.low_ms), time_ms(step.high_ms))
                         : shortened(step.algorithm, run.steps > 0 ? 16 : 26));
    table.add(std::move(cells));
  }
  fmt::print("{}\n", table.text());
}

void print_parts(const RunAnswer& answer) {
  using enum Align;
  Table table({{"workers", right},
               {"sent/worker", right},
               {"messages", right},
               {"alpha", right},
               {"beta", right},
               {"gamma", right},
               {"wait", right},
               {"best"},
               {"its step", right}});
  for (std::size_t i = 0; i < answer.asked.size(); ++i) {
    const auto& step = answer.asked[i];
    const auto& best = answer.schemes[i].front();
    const auto share = [](double part) {
      return part <= 0      ? std::string("-")
             : part < 0.005 ? "<1%"
                            : fmt::format("{:.0f}%", part * 100);
    };
    table.add({std::to_string(step.workers),
               human_bytes(static_cast<std::uint64_t>(step.bytes_per_worker)),
               fmt::format("{:.0f}", step.messages), share(step.alpha), share(step.beta),
               share(step.gamma), share(step.wait), best.scheme, time_ms(best.step_ms)});
  }
  fmt::print("{}\n", table.text());
}

void print_schemes(const RunAnswer& answer) {
  using enum Align;
  std::vector<Table::Column> columns{{"exposed, ms", left}};
  for (const auto& step : answer.asked) columns.push_back({std::to_string(step.workers), right});
  if (columns.size() > 7) return;  // the JSON has them all
  Table table(std::move(columns));
  for (const auto scheme : modelled_schemes()) {
    std::vector<std::string> cells{std::string(scheme)};
    for (const auto& steps : answer.schemes)
      for (const auto& step : steps)
        if (step.scheme == scheme)
          cells.push_back(step.exposed_ms >= 1e5 ? fmt::format("{:.3g}", step.exposed_ms)
                                                 : fmt::format("{:.2f}", step.exposed_ms));
    if (cells.size() > 1) table.add(std::move(cells));
  }
  fmt::print("{}\n", table.text());
}

void print_measured(const TrainingRun& run) {
  const auto& seen = run.measured;
  if (seen.steps == 0) return;
  fmt::print("{}\n",
             wrapped(fmt::format("Measured at {:.0f} workers, medians of {} steps: step "
                                 "{}, communication {} exposed and {} hidden, {} sent a "
                                 "worker.",
                                 run.workers, seen.steps, time_ms(seen.step_ms),
                                 time_ms(seen.exposed_ms), time_ms(seen.hidden_ms),
                                 human_bytes(static_cast<std::uint64_t>(seen.bytes_per_worker))),
                     80));
}

void print_limit(const RunAnswer& answer, const TrainingRun& run) {
  if (!answer.limit_known) return;
  if (run.compute_ms() <= 0) return;
  if (!answer.half_efficient)
    fmt::print("Scaling limit: communication takes more than half of every step.\n");
  else if (2 * *answer.half_efficient > StepPredictor::kMostWorkers)
    fmt::print("Scaling limit: none up to {} workers; most of a step computes.\n",
               *answer.half_efficient);
  else
    fmt::print("Scaling limit: {} workers; beyond, less than half of a step computes.\n",
               *answer.half_efficient);
}

Json step_json(const StepPrediction& step) {
  return {
      {"workers", step.workers},
      {"scheme", step.scheme},
      {"algorithm", step.algorithm},
      {"step_us", step.step_ms * 1e3},
      {"low_us", step.low_ms * 1e3},
      {"high_us", step.high_ms * 1e3},
      {"compute_us", step.compute_ms * 1e3},
      {"straggling_us", step.straggling_ms * 1e3},
      {"select_us", step.select_ms * 1e3},
      {"communication_us", step.communication_ms * 1e3},
      {"exposed_us", step.exposed_ms * 1e3},
      {"efficiency", step.efficiency},
      {"bytes_per_worker", step.bytes_per_worker},
      {"messages", step.messages},
      {"share",
       {{"alpha", step.alpha}, {"beta", step.beta}, {"gamma", step.gamma}, {"wait", step.wait}}},
      {"dense_lower_bound_us", step.lower_bound_ms * 1e3},
      {"run_s", step.run_s}};
}

}  // namespace

void print_run_text(const RunAnswer& answer, const StepPredictor& predictor) {
  const Paint paint(stdout);
  const auto& run = predictor.run();
  std::string what =
      fmt::format("{}: {} of gradient in {} bucket{}, {}", run.name,
                  human_bytes(static_cast<std::uint64_t>(run.gradient_bytes())), run.buckets.size(),
                  run.buckets.size() == 1 ? "" : "s", run.scheme);
  if (is_sparse(run.scheme)) what += fmt::format(" at {:g} %", run.density * 100);
  if (run.pattern != "ddp") what += fmt::format(", {}", run.pattern);
  if (run.local_steps > 1) what += fmt::format(", every {:.0f} steps", run.local_steps);
  what += fmt::format(", {} computing a step{}", time_ms(run.compute_ms()),
                      run.overlap > 0 ? ", overlapped" : "");
  fmt::print("{}\n", paint.bold(wrapped(what, 80)));
  print_steps(answer, run);
  print_parts(answer);
  print_schemes(answer);
  print_limit(answer, run);
  for (const auto& objection : answer.objections)
    fmt::print("{}\n",
               wrapped(fmt::format("Objection: {}: {}.", objection.claim, objection.reason), 80));
  print_measured(run);
  fmt::print("{}\n", wrapped(fmt::format("Modelled, on {}. What a scheme, fewer synchronisations "
                                         "or a larger batch do to convergence is not.",
                                         describe(predictor.network())),
                             80));
  if (!answer.no_effect.empty())
    fmt::print(
        "{}\n",
        wrapped(fmt::format("Without effect here: {}.", fmt::join(answer.no_effect, ", ")), 80));
  if (!answer.left_out.empty())
    fmt::print("{}\n", wrapped(fmt::format("Not tried, too long to simulate: {}.",
                                           fmt::join(answer.left_out, ", ")),
                               80));
}

void print_run_json(const RunAnswer& answer, const StepPredictor& predictor) {
  const auto& run = predictor.run();
  Json inputs{{"name", run.name},
              {"source", answer.source},
              {"pattern", run.pattern},
              {"scheme", run.scheme},
              {"gradient_bytes", run.gradient_bytes()},
              {"buckets", run.buckets.size()}};
  for (const auto& setting : run_settings()) inputs[std::string(setting.key)] = run.*setting.value;
  Json results = Json::array();
  for (std::size_t i = 0; i < answer.asked.size(); ++i) {
    auto row = step_json(answer.asked[i]);
    row["best_scheme"] = answer.schemes[i].front().scheme;
    row["schemes"] = Json::array();
    for (const auto& step : answer.schemes[i]) row["schemes"].push_back(step_json(step));
    row["no_effect"] = answer.no_effect;
    results.push_back(std::move(row));
  }
  Json objections = Json::array();
  for (const auto& objection : answer.objections)
    objections.push_back({{"id", objection.id},
                          {"claim", objection.claim},
                          {"reason", objection.reason},
                          {"stated", objection.stated},
                          {"modelled", objection.modelled},
                          {"unit", objection.unit}});
  Json document{{"schema", "sinew-predict-run"},
                {"version", 1},
                {"sinew", SINEW_VERSION},
                {"network", predictor.network().name},
                {"run", std::move(inputs)},
                {"results", std::move(results)},
                {"objections", std::move(objections)},
                {"left_out", answer.left_out}};
  if (run.measured.steps > 0)
    document["measured"] = {{"workers", run.workers},
                            {"steps", run.measured.steps},
                            {"step_us", run.measured.step_ms * 1e3},
                            {"exposed_us", run.measured.exposed_ms * 1e3},
                            {"hidden_us", run.measured.hidden_ms * 1e3},
                            {"bytes_per_worker", run.measured.bytes_per_worker}};
  if (answer.limit_known)
    document["half_efficient_workers"] =
        answer.half_efficient ? Json(*answer.half_efficient) : Json(nullptr);
  fmt::print("{}\n", document.dump(1));
}

}  // namespace sinew
