#include "model/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <sinew/error.hpp>
#include "model/bounds.hpp"
#include "model/expected_max.hpp"
#include "model/overlap.hpp"

namespace sinew {
namespace {

constexpr double kPsPerMs = 1e9;

double ms(const Costed& cost) { return static_cast<double>(cost.end.at) / kPsPerMs; }

double share(Picoseconds part, const Costed& cost) {
  return cost.end.at > 0 ? static_cast<double>(part) / static_cast<double>(cost.end.at) : 0;
}

}  // namespace

StepPredictor::StepPredictor(const TrainingRun& run, const Network* given,
                             std::vector<std::string> algorithms, const StepPredictor* known)
    : run_(run), outer_(network_of(run, given), algorithms) {
  if (known != nullptr && known->network() == network()) outer_ = known->outer_;
  if (run.island_workers > 1)
    inner_ = std::make_unique<CostBook>(island_of(run, outer_.network()), std::move(algorithms));
}

Sparsity StepPredictor::sparsity(double bytes) const {
  return {bytes / run_.element_bytes,
          run_.element_bytes,
          run_.density,
          run_.item_bytes,
          run_.fill,
          run_.imbalance};
}

// What synchronising `bytes` of gradient takes, flat or through islands.
Costed StepPredictor::synchronised(int workers, std::string_view scheme, double bytes) {
  if (workers < 2) return {};
  if (inner_ && workers > run_.island_workers) return through_islands(workers, scheme, bytes);
  auto& book = inner_ ? *inner_ : outer_;
  return book.sum(phases_of(scheme, workers, sparsity(bytes)), workers);
}

// Sum up inside, exchange between islands, hand out inside. With a link for each worker every one
// of them carries its share across; otherwise one speaks for the island.
Costed StepPredictor::through_islands(int workers, std::string_view scheme, double bytes) {
  const int inside = static_cast<int>(run_.island_workers);
  const int islands = (workers + inside - 1) / inside;
  const double lanes = std::min<double>(run_.island_uplinks, inside);
  Costed total = inner_->best(Collective::reduce_scatter, inside, bytes);
  total += outer_.sum(phases_of(scheme, islands, sparsity(bytes / lanes)), islands);
  total += inner_->best(Collective::allgather, inside, bytes);
  total.algorithm = fmt::format("islands: {}", total.algorithm);
  return total;
}

Costed StepPredictor::all_gathered(Collective collective, int workers, double bytes) {
  return workers < 2 ? Costed{} : outer_.best(collective, workers, bytes);
}

std::vector<double> StepPredictor::ready_times(double backward_ms) const {
  std::vector<double> ready;
  double before = 0;
  const double all = run_.gradient_bytes();
  for (const auto& bucket : run_.buckets) {
    before += bucket.bytes;
    ready.push_back(bucket.ready_ms >= 0 ? bucket.ready_ms * run_.batch_factor()
                                         : backward_ms * before / all);
  }
  return ready;
}

// Gradients are added up bucket by bucket, every `local_steps` steps, perhaps in fragments that
// take turns. Between two synchronisations all workers compute, and may hide it behind that.
Costed StepPredictor::data_parallel(StepPrediction& step, double backward_ms) {
  const auto ready = ready_times(backward_ms);
  std::vector<Travelling> buckets;
  Costed total;
  for (std::size_t i = 0; i < run_.buckets.size(); ++i) {
    auto cost = synchronised(step.workers, step.scheme, run_.buckets[i].bytes / run_.fragments);
    buckets.push_back({ready[i], ms(cost)});
    total += cost;
  }
  const double takes = ms(total) * run_.fragments;  // all of the gradient, in all
  step.communication_ms = takes;
  if (run_.local_steps > 1) {
    const double between = run_.overlap > 0 ? step.compute_ms * run_.local_steps : 0;
    step.exposed_ms = std::max(0.0, takes - between) / run_.local_steps;
  } else {
    step.exposed_ms = run_.overlap > 0 ? exposed(buckets, backward_ms) : takes;
  }
  return total;
}

// Parameters are spread over all workers: gathered for the forward pass and again for the backward
// pass, gradients scattered as they are summed up.
Costed StepPredictor::sharded(StepPrediction& step, double forward_ms, double backward_ms) {
  const double all = run_.gradient_bytes();
  std::vector<Travelling> forward, backward;
  std::vector<double> forward_compute, backward_compute;
  Costed total;
  for (const auto& bucket : run_.buckets) {
    const auto gather = all_gathered(Collective::allgather, step.workers, bucket.bytes);
    const auto scatter = all_gathered(Collective::reduce_scatter, step.workers, bucket.bytes);
    total += gather;
    total += gather;
    total += scatter;
    forward.push_back({0, ms(gather)});
    forward_compute.push_back(forward_ms * bucket.bytes / all);
    backward.push_back({0, ms(gather) + ms(scatter)});
    backward_compute.push_back(backward_ms * bucket.bytes / all);
  }
  step.communication_ms = ms(total);
  if (run_.overlap > 0) {
    step.exposed_ms = prefetched(forward, forward_compute) - forward_ms +
                      prefetched(backward, backward_compute) - backward_ms;
    if (!backward.empty() && step.workers > 1)  // the last gradients are scattered after all
      step.exposed_ms +=
          ms(all_gathered(Collective::reduce_scatter, step.workers, run_.buckets.back().bytes));
    step.exposed_ms = std::min(step.exposed_ms, step.communication_ms);
  } else {
    step.exposed_ms = step.communication_ms;
  }
  return total;
}

// Tokens go to their experts and come back, in both passes; nothing can be computed meanwhile.
Costed StepPredictor::experts(int workers) {
  Costed total;
  if (workers < 2 || !(run_.moe_layers > 0)) return total;
  const auto& one =
      outer_.best(Collective::alltoall, workers, run_.moe_bytes, run_.moe_imbalance, true);
  for (int i = 0; i < static_cast<int>(4 * run_.moe_layers); ++i) total += one;
  return total;
}

StepPrediction StepPredictor::at(int workers, std::string_view scheme) {
  StepPrediction step{.workers = workers, .scheme = std::string(scheme)};
  const double factor = run_.batch_factor();
  const double forward = (run_.forward_ms + run_.data_ms) * factor;
  const double backward = run_.backward_ms * factor;
  step.compute_ms = run_.compute_ms();
  step.straggling_ms = (forward + backward) * run_.spread * expected_normal_max(workers);
  Costed cost =
      run_.pattern == "zero3" ? sharded(step, forward, backward) : data_parallel(step, backward);
  if (run_.pattern == "moe") {
    const auto tokens = experts(workers);
    step.communication_ms += ms(tokens);
    step.exposed_ms += ms(tokens);
    cost += tokens;
  }
  step.select_ms = is_sparse(scheme) && run_.pattern != "zero3" && workers > 1
                       ? run_.select_ms / run_.local_steps
                       : 0;
  const double hidden = std::max(0.0, step.communication_ms / run_.local_steps - step.exposed_ms);
  step.slowed_ms = run_.slowdown * std::min(hidden, backward);
  const double busy = step.compute_ms + step.straggling_ms + step.select_ms + step.slowed_ms;
  step.step_ms = busy + step.exposed_ms;
  const auto& error = outer_.network().error;
  step.low_ms = busy + step.exposed_ms * error.low;
  step.high_ms = busy + step.exposed_ms * error.high;
  step.efficiency = step.step_ms > 0 ? step.compute_ms / step.step_ms : 1;
  step.algorithm = cost.algorithm;
  step.alpha = share(cost.end.alpha, cost);
  step.beta = share(cost.end.beta, cost);
  step.gamma = share(cost.end.gamma, cost);
  step.wait = cost.end.at > 0 ? std::max(0.0, 1 - step.alpha - step.beta - step.gamma) : 0;
  step.bytes_per_worker = cost.bytes_per_rank * run_.fragments;
  step.messages = cost.messages * run_.fragments;
  step.lower_bound_ms =
      lower_bound_ps(Collective::allreduce, workers, run_.gradient_bytes(), outer_.network()) /
      kPsPerMs;
  step.run_s = run_.steps * run_.workers * step.step_ms / 1e3 / (workers * factor);
  return step;
}

std::vector<StepPrediction> StepPredictor::all_schemes(int workers) {
  std::vector<StepPrediction> steps;
  if (run_.pattern == "zero3") return {at(workers)};
  for (const auto scheme : modelled_schemes()) steps.push_back(at(workers, scheme));
  std::stable_sort(steps.begin(), steps.end(),
                   [](const auto& a, const auto& b) { return a.step_ms < b.step_ms; });
  return steps;
}

std::optional<int> StepPredictor::half_efficient(int first) {
  std::optional<int> most;
  for (int workers = std::max(2, first); workers <= kMostWorkers; workers *= 2) {
    if (at(workers).efficiency < 0.5) break;
    most = workers;
  }
  return most;
}

std::vector<std::string> StepPredictor::left_out() const {
  auto names = outer_.left_out();
  if (inner_) names.insert(names.end(), inner_->left_out().begin(), inner_->left_out().end());
  return names;
}

std::vector<std::string> without_effect(StepPredictor& predictor, const Network* given,
                                        const std::vector<std::string>& algorithms,
                                        std::span<const std::string> inputs,
                                        std::span<const int> workers) {
  const auto answers = [&](StepPredictor& asked) {
    std::vector<double> values;
    for (const int count : workers) {
      const auto step = asked.at(count);
      values.insert(values.end(), {step.step_ms, step.exposed_ms, step.run_s});
    }
    return values;
  };
  const auto& run = predictor.run();
  const auto as_asked = answers(predictor);
  std::vector<std::string> idle;
  for (const auto& key : inputs) {
    const RunSetting* setting = nullptr;
    for (const auto& row : run_settings())
      if (row.key == key || row.alias == key) setting = &row;
    if (setting == nullptr) continue;
    TrainingRun moved = run;
    auto& value = moved.*setting->value;
    const double before = value;
    if (setting->value == &TrainingRun::overlap) {
      value = 1 - value;
    } else {
      // Far enough for whole numbers, and back where there is no room above.
      value = std::min(setting->most, setting->whole ? std::ceil(value * 1.5 + 1) : value * 1.25);
      if (value == before) value = std::max(setting->least, value / 2);
    }
    StepPredictor other(moved, given, algorithms, &predictor);
    if (answers(other) == as_asked) idle.push_back(key);
  }
  return idle;
}

}  // namespace sinew
