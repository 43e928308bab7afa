#include "report/run_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "report/words.hpp"

namespace sinew::report {
namespace {

constexpr RunPart kParts[] = {
    {&StepPrediction::compute_ms, "compute", "computing"},
    {&StepPrediction::straggling_ms, "waiting", "waiting for the slowest"},
    {&StepPrediction::select_ms, "compress", "choosing what to send"},
    {&StepPrediction::slowed_ms, "other", "slowed down by what travels meanwhile"},
    {&StepPrediction::exposed_ms, "moving", "exposed communication"},
};

std::string bytes(double value) { return human_bytes(static_cast<std::uint64_t>(value)); }

}  // namespace

std::string time_ms(double ms) { return ms == 0 ? "0" : human_ns(ms * 1e6); }

std::string run_text(const TrainingRun& run) {
  auto text =
      fmt::format("{}: {} of gradient in {} bucket{}, {}", run.name, bytes(run.gradient_bytes()),
                  run.buckets.size(), run.buckets.size() == 1 ? "" : "s", run.scheme);
  if (is_sparse(run.scheme)) text += fmt::format(" at {:g} %", run.density * 100);
  if (run.pattern != "ddp") text += fmt::format(", {}", run.pattern);
  if (run.local_steps > 1) text += fmt::format(", every {:.0f} steps", run.local_steps);
  return text + fmt::format(", {} computing a step{}", time_ms(run.compute_ms()),
                            run.overlap > 0 ? ", overlapped" : "");
}

std::string limit_text(const RunAnswer& answer) {
  if (!answer.limit_known || answer.run.compute_ms() <= 0) return "";
  if (!answer.half_efficient)
    return "Scaling limit: communication takes more than half of every step.";
  if (2 * *answer.half_efficient > StepPredictor::kMostWorkers)
    return fmt::format("Scaling limit: none up to {} workers; most of a step computes.",
                       *answer.half_efficient);
  return fmt::format("Scaling limit: {} workers; beyond, less than half of a step computes.",
                     *answer.half_efficient);
}

std::string measured_text(const RunAnswer& answer) {
  const auto& seen = answer.run.measured;
  if (seen.steps == 0) return "";
  return fmt::format(
      "Measured at {:.0f} workers, medians of {} steps: step {}, communication {} exposed and {} "
      "hidden, {} sent a worker.",
      answer.run.workers, seen.steps, time_ms(seen.step_ms), time_ms(seen.exposed_ms),
      time_ms(seen.hidden_ms), bytes(seen.bytes_per_worker));
}

std::span<const RunPart> run_parts() { return kParts; }

bool occurs(const RunPart& part, const RunAnswer& answer) {
  return std::any_of(answer.asked.begin(), answer.asked.end(),
                     [&](const auto& step) { return step.*part.ms > 0; });
}

bool has_bounds(const RunAnswer& answer) {
  return std::any_of(answer.asked.begin(), answer.asked.end(),
                     [](const auto& step) { return step.low_ms != step.high_ms; });
}

TextTable more_workers_table(const Summary& summary) {
  // What terminals have no room for comes last.
  TextTable table{"The run on more workers",
                  "",
                  {"workers", "step", "exposed", "efficiency", "best", "its step", "algorithm"},
                  {}};
  if (!summary.more_workers) return table;
  const auto& answer = *summary.more_workers;
  const auto& run = answer.run;
  const auto asked_for = fmt::format("{:g} %", run.density * 100);
  const auto density = is_sparse(run.scheme) ? asked_for : with_label(asked_for, Source::assumed);
  table.about = fmt::format(
      "Modelled, on {}. {}. Best is the scheme with the shortest step, sparse ones at a density of "
      "{}; what a scheme does to convergence is not modelled. {} {}",
      answer.about_network, run_text(run), density, limit_text(answer), measured_text(answer));
  const bool bounds = has_bounds(answer);
  if (bounds) table.columns.insert(table.columns.end(), {"between", "and"});
  table.columns.emplace_back("computing");
  for (std::size_t i = 0; i < answer.asked.size(); ++i) {
    const auto& step = answer.asked[i];
    const auto& best = answer.schemes[i].front();
    auto& row = table.rows.emplace_back();
    row = {fmt::format("{}", step.workers),
           time_ms(step.step_ms),
           time_ms(step.exposed_ms),
           percent(step.efficiency),
           best.scheme,
           time_ms(best.step_ms),
           step.algorithm};
    if (bounds) row.insert(row.end(), {time_ms(step.low_ms), time_ms(step.high_ms)});
    row.push_back(time_ms(step.compute_ms));
  }
  return table;
}

}  // namespace sinew::report
