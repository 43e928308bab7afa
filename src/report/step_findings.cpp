// Findings that follow from the iterations of a run.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "report/performance_findings.hpp"
#include "report/shares.hpp"
#include "report/wire.hpp"
#include "report/words.hpp"

namespace sinew::report {
namespace {

std::string bytes(double value) { return human_bytes(static_cast<std::uint64_t>(value)); }

/// The mean of an iteration over all phases.
Split mean_split(const Summary& summary) {
  Split mean;
  const auto weight = 1 / static_cast<double>(summary.steps.iterations.size());
  for (const auto& one : summary.steps.iterations) mean.add(one.split, weight);
  return mean;
}

/// Allreduces that carry data: how many an iteration of a rank has, and of what size.
struct Buckets {
  double an_iteration = 0, mean_bytes = 0, moving_s = 0;  // moving: of an iteration
};
std::optional<Buckets> buckets_of(const Summary& summary) {
  constexpr std::uint64_t kData = 1024;
  if (summary.steps.iterations.empty()) return {};
  double calls = 0, moved = 0, moving = 0;
  for (const auto& routine : summary.routines) {
    if (collective_of(routine.routine) != Collective::allreduce) continue;
    for (const auto& row : routine.sizes)
      if (row.bytes >= kData) {
        calls += static_cast<double>(row.calls);
        moved += static_cast<double>(row.moved);
        moving += row.seconds - row.waited_s;
      }
  }
  if (calls <= 0) return {};
  const auto each = static_cast<double>(summary.ranks.size() * summary.steps.iterations.size());
  return Buckets{calls / each, moved / calls, moving / each};
}

constexpr double kHidden = 0.1;  // below, nothing is hidden to speak of

double hidden_share(const Split& split) {
  return ratio(split.hidden_s, split.hidden_s + split.exposed_s());
}

}  // namespace

std::optional<Finding> dense_phase(const Summary& summary) {
  const auto* const dense = phase_named(summary.steps, "dense");
  const auto* const sparse = phase_named(summary.steps, "sparse");
  if (dense == nullptr || sparse == nullptr) return {};
  double all = 0, in_dense = 0;
  std::uint64_t dense_iterations = 0;
  for (const auto& phase : summary.steps.phases) {
    const auto wire = phase.wire_bytes * static_cast<double>(phase.iterations);
    all += wire;
    if (phase.name == "dense") {
      in_dense += wire;
      dense_iterations += phase.iterations;
    }
  }
  const auto share = ratio(in_dense, all);
  const auto of_steps = ratio(static_cast<double>(dense_iterations),
                              static_cast<double>(summary.steps.iterations.size()));
  if (share < 0.8 || of_steps < 0.2) return {};
  const auto a_step = std::max(0.0, dense->split.exposed_s() - sparse->split.exposed_s());
  Finding finding;
  finding.id = "dense-phase";
  finding.claim = fmt::format(
      "The dense iterations move {:.1f} % of all bytes: {} of {} "
      "iterations are not compressed.",
      100 * share, dense_iterations, summary.steps.iterations.size());
  finding.arithmetic = {fmt::format(
      "Dense: {} x {} a rank. Sparse: {} x {}. An iteration of either differs by {:.1f} "
      "times; the run as a whole saves {:.1f} %.",
      dense_iterations, bytes(dense->wire_bytes), sparse->iterations, bytes(sparse->wire_bytes),
      ratio(dense->wire_bytes, sparse->wire_bytes),
      percent_of(dense->wire_bytes * static_cast<double>(summary.steps.iterations.size()) - all,
                 dense->wire_bytes * static_cast<double>(summary.steps.iterations.size())))};
  finding.evidence = {{"dense_iterations", static_cast<double>(dense_iterations), ""},
                      {"iterations", static_cast<double>(summary.steps.iterations.size()), ""},
                      {"dense_bytes", dense->wire_bytes, "bytes"},
                      {"sparse_bytes", sparse->wire_bytes, "bytes"},
                      {"dense_share", 100 * share, "%"}};
  finding.confidence = timed(summary);
  finding.advice = {
      "Shorten the dense warm-up, or train longer: what compression saves does not "
      "show in so short a run."};
  const auto gain = 0.5 * static_cast<double>(dense_iterations) * a_step;
  finding.benefit = Benefit{{gain},
                            {0},
                            {2 * gain},
                            fmt::format("half of the dense iterations x {} less exposed "
                                        "communication each",
                                        seconds(a_step))};
  finding.command =
      fmt::format("sinew train --compress oktopk:0.02 --warmup {}", dense_iterations / 2);
  finding.chart = "chart-iterations";
  finding.cost_s = 2 * gain;
  return finding;
}

std::optional<Finding> density_not_held(const Summary& summary) {
  constexpr double kLow = 0.8, kHigh = 1.25;
  if (!summary.compression || !summary.compression->density || !summary.compression->target_density)
    return {};
  const auto& compression = *summary.compression;
  const auto target = compression.target_density->value, got = compression.density->value;
  if (target <= 0 || (got >= kLow * target && got <= kHigh * target)) return {};
  Finding finding;
  finding.id = "density-not-held";
  finding.claim =
      fmt::format("The density is {:.1f} % where {:.1f} % was asked for, {:.1f} times as much.",
                  100 * got, 100 * target, got / target);
  finding.arithmetic = {fmt::format(
      "{:.1f} % of {:.0f} values are {:.0f} items an iteration; {:.0f} were asked for. Known from: "
      "{}.",
      100 * got, compression.dense_bytes / 4, got * compression.dense_bytes / 4,
      target * compression.dense_bytes / 4, compression.density_from)};
  finding.evidence = {
      {"density", 100 * got, "%"}, {"target", 100 * target, "%"}, {"times", got / target, ""}};
  finding.confidence =
      compression.density->source == Source::measured ? Confidence::measured : Confidence::inferred;
  finding.advice = {
      "Choose the threshold anew each step from a histogram: one that is corrected by "
      "a percent a step runs behind for a hundred steps."};
  const auto exposed = compression.sparse_exposed_s.value_or(Measured{}).value;
  const auto* const sparse = phase_named(summary.steps, "sparse");
  const auto steps = sparse == nullptr ? 0.0 : static_cast<double>(sparse->iterations);
  const auto gain = got > target ? steps * exposed * (1 - target / got) : 0;
  if (gain > 0)
    finding.benefit = Benefit{{gain}, {0}, {gain}, "exposed communication in proportion to bytes"};
  finding.command = fmt::format("sinew bench sparse --scheme oktopk --density {:g} -p {}", target,
                                summary.ranks.size());
  finding.chart = "chart-compression";
  finding.cost_s = gain;
  return finding;
}

std::optional<Finding> no_overlap(const Summary& summary) {
  constexpr double kNotable = 0.1, kBackward = 2.0 / 3;
  if (!summary.names_compute || summary.steps.iterations.empty() || one_large_bucket(summary))
    return {};
  const auto mean = mean_split(summary);
  if (mean.moving_s < kNotable * mean.elapsed_s || hidden_share(mean) >= kHidden) return {};
  const auto iterations = static_cast<double>(summary.steps.iterations.size());
  Finding finding;
  finding.id = "no-overlap";
  finding.claim = fmt::format(
      "Communication does not overlap computation: {:.0f} % of an iteration moves data while "
      "nothing is computed.",
      percent_of(mean.moving_s, mean.elapsed_s));
  finding.arithmetic = {fmt::format(
      "An iteration of {} computes for {}, moves data for {} beside it, and {} of that is hidden.",
      seconds(mean.elapsed_s), seconds(mean.compute_s), seconds(mean.moving_s),
      seconds(mean.hidden_s))};
  finding.evidence = {{"iteration", mean.elapsed_s, "s"},
                      {"compute", mean.compute_s, "s"},
                      {"moving", mean.moving_s, "s"},
                      {"hidden", mean.hidden_s, "s"}};
  finding.confidence = timed(summary);
  finding.advice = {
      "Start the reduction of a bucket when its gradients are ready, while the rest of "
      "the backward pass runs."};
  const auto most = iterations * std::min(mean.moving_s, kBackward * mean.compute_s);
  finding.benefit = Benefit{{0.8 * most},
                            {0.4 * most},
                            {most},
                            "the lesser of what moves and two thirds of what is computed (the "
                            "backward pass); four fifths of it reached"};
  finding.command = fmt::format("sinew train --model cnn -p {} --steps 200", summary.ranks.size());
  finding.chart = "chart-iterations";
  finding.cost_s = iterations * mean.moving_s;
  return finding;
}

std::optional<Finding> small_buckets(const Summary& summary) {
  constexpr double kMany = 8, kSmall = 256 * 1024, kNotable = 0.05;
  const auto buckets = buckets_of(summary);
  if (!buckets || buckets->an_iteration < kMany || buckets->mean_bytes > kSmall) return {};
  const auto mean = mean_split(summary);
  if (buckets->moving_s < kNotable * mean.elapsed_s) return {};
  Finding finding;
  finding.id = "buckets-too-small";
  finding.claim = fmt::format(
      "Gradients travel in {:.0f} pieces an iteration of {} on average: "
      "each pays for its start.",
      buckets->an_iteration, bytes(buckets->mean_bytes));
  finding.arithmetic = {fmt::format(
      "{:.1f} allreduces an iteration take {} without waiting, {:.1f} % of it: {} each.",
      buckets->an_iteration, seconds(buckets->moving_s),
      percent_of(buckets->moving_s, mean.elapsed_s),
      seconds(buckets->moving_s / buckets->an_iteration))};
  finding.evidence = {{"buckets", buckets->an_iteration, ""},
                      {"mean_bytes", buckets->mean_bytes, "bytes"},
                      {"moving", buckets->moving_s, "s"}};
  finding.confidence = timed(summary);
  finding.advice = {"Fuse gradients into buckets of 1 to 16 MiB."};
  const auto iterations = static_cast<double>(summary.steps.iterations.size());
  const auto left = std::max(1.0, buckets->an_iteration * buckets->mean_bytes / (4 << 20));
  const auto gain = iterations * buckets->moving_s * (1 - left / buckets->an_iteration);
  finding.benefit = Benefit{{0.5 * gain},
                            {0},
                            {gain},
                            "all of it if the start of a call is what costs, half if bytes cost as "
                            "much"};
  finding.command = fmt::format("sinew bench allreduce -p {} -b 4K -e 16M", summary.ranks.size());
  finding.chart = "chart-calls-0";
  finding.cost_s = gain;
  return finding;
}

std::optional<Finding> one_large_bucket(const Summary& summary) {
  constexpr double kLarge = 4 << 20, kNotable = 0.1, kBackward = 2.0 / 3;
  const auto buckets = buckets_of(summary);
  if (!buckets || !summary.names_compute || buckets->an_iteration > 1.5 ||
      buckets->mean_bytes < kLarge)
    return {};
  const auto mean = mean_split(summary);
  if (mean.moving_s < kNotable * mean.elapsed_s || hidden_share(mean) >= kHidden) return {};
  Finding finding;
  finding.id = "buckets-too-large";
  finding.claim = fmt::format(
      "All gradients travel in one piece of {}: it cannot begin before the last is computed.",
      bytes(buckets->mean_bytes));
  finding.arithmetic = {
      fmt::format("{:.1f} allreduce an iteration; {} of {} hidden behind {} of computation.",
                  buckets->an_iteration, seconds(mean.hidden_s),
                  seconds(mean.hidden_s + mean.exposed_s()), seconds(mean.compute_s))};
  finding.evidence = {{"buckets", buckets->an_iteration, ""},
                      {"mean_bytes", buckets->mean_bytes, "bytes"},
                      {"hidden", mean.hidden_s, "s"},
                      {"moving", mean.moving_s, "s"}};
  finding.confidence = timed(summary);
  finding.advice = {"Cut it into buckets of some MiB and start each when it is ready."};
  const auto iterations = static_cast<double>(summary.steps.iterations.size());
  const auto most = iterations * std::min(mean.moving_s, kBackward * mean.compute_s);
  finding.benefit = Benefit{{0.8 * most},
                            {0.4 * most},
                            {most},
                            "the lesser of what moves and two thirds of what is computed"};
  finding.command = fmt::format("sinew train --model mlp -p {} --bucket 4M", summary.ranks.size());
  finding.chart = "chart-iterations";
  finding.cost_s = iterations * mean.moving_s;
  return finding;
}

std::optional<Finding> costly_compression(const Summary& summary) {
  if (!summary.compression) return {};
  const auto& compression = *summary.compression;
  if (!compression.dense_step_s || !compression.sparse_step_s) return {};
  const auto dense = compression.dense_step_s->value, sparse = compression.sparse_step_s->value;
  const auto saved = compression.dense_exposed_s.value_or(Measured{}).value -
                     compression.sparse_exposed_s.value_or(Measured{}).value;
  const auto cost = compression.compress_s.value_or(Measured{}).value;
  if (sparse <= dense && cost <= saved) return {};
  if (sparse <= dense && cost < 0.01 * sparse) return {};
  const auto* const phase = phase_named(summary.steps, "sparse");
  const auto steps = phase == nullptr ? 0.0 : static_cast<double>(phase->iterations);
  const auto loss = std::max(sparse - dense, cost - saved);
  Finding finding;
  finding.id = "compression-costs";
  finding.arithmetic = {fmt::format(
      "It sends {:.1f} times less and saves {} of exposed communication; selecting and encoding "
      "take {}.",
      compression.ratio(), seconds(std::max(0.0, saved)),
      cost > 0 ? seconds(cost) : std::string("a time that was not recorded"))};
  if (sparse > dense) {
    finding.claim = fmt::format(
        "Compression costs more than it saves: an iteration takes {} with it and {} without.",
        seconds(sparse), seconds(dense));
  } else {
    finding.claim = fmt::format(
        "Compression costs more than it saves: {} an iteration for {} less exposed communication.",
        seconds(cost), seconds(std::max(0.0, saved)));
    finding.arithmetic.push_back(fmt::format(
        "Iterations took {} with it and {} without, but what made them shorter was something else.",
        seconds(sparse), seconds(dense)));
  }
  finding.evidence = {{"sparse_iteration", sparse, "s"},
                      {"dense_iteration", dense, "s"},
                      {"saved", saved, "s"},
                      {"compress", cost, "s"},
                      {"ratio", compression.ratio(), ""}};
  finding.confidence = timed(summary);
  finding.advice = {
      "Send dense on this link, or choose a scheme whose selection is one pass over "
      "the gradient."};
  finding.benefit =
      Benefit{{steps * loss}, {0}, {steps * loss}, "the iterations that were compressed, dense"};
  finding.command = fmt::format("sinew bench sparse --scheme oktopk -p {}", summary.ranks.size());
  finding.chart = "chart-compression";
  finding.cost_s = steps * loss;
  return finding;
}

std::optional<Finding> slow_data(const Summary& summary) {
  constexpr double kNotable = 0.1;
  if (!summary.names_data || summary.split.elapsed_s <= 0) return {};
  const auto& split = summary.split;
  if (split.data_s < kNotable * split.elapsed_s) return {};
  Finding finding;
  finding.id = "data-loading";
  finding.claim = fmt::format("Ranks wait for input {:.0f} % of the time.",
                              percent_of(split.data_s, split.elapsed_s));
  finding.arithmetic = {fmt::format("{} of {} pass in loading data while nothing is computed.",
                                    seconds(split.data_s), seconds(split.elapsed_s))};
  finding.evidence = {{"data", split.data_s, "s"}, {"elapsed", split.elapsed_s, "s"}};
  finding.confidence = timed(summary);
  finding.advice = {"Load the next batch while this one is computed."};
  finding.benefit = Benefit{{0.9 * split.data_s},
                            {0},
                            {split.data_s},
                            "all of it, if computing a batch takes longer than loading one"};
  finding.command = "sinew report RUN --format perfetto > timeline.json  # ui.perfetto.dev";
  finding.chart = "chart-iterations";
  finding.cost_s = split.data_s;
  return finding;
}

}  // namespace sinew::report
