// What of the planner is about trials: which calls take part, which two algorithms, and the plans.
#include "runtime/planner.hpp"
#include "transport/descriptor.hpp"

namespace sinew {
namespace {

// Whoever calls with ever new counts gets what is predicted fastest for those beyond: trials that
// never end cost more than they find.
constexpr std::size_t kMostTrials = 256;

}  // namespace

std::size_t Planner::KindHash::operator()(const Kind& kind) const noexcept { return hash_of(kind); }

// Answers alike on all ranks. Parts of different sizes are another matter in every call, so that
// their times do not compare; where there is nothing to move, there is nothing to win.
bool Planner::takes_part(const Call& call) const noexcept {
  const bool is_ragged = call.counts.data() != nullptr;
  return tries_ && !is_ragged && (call.count > 0 || call.collective == Collective::barrier) &&
         wanted_algorithm(call).empty();
}

// Whether buffers lie in memory that all share is a rank's own affair, so the two are those for
// buffers anywhere. Where an algorithm for such memory is the fastest, all must use that, as
// without trials, and one that does not is told.
Planner::Tried Planner::make_trial(const Call& call) const {
  std::vector<const Algorithm*> fitting;
  bool shared_is_faster = false;
  for (const auto& candidate : predicted_best(call, true)) {
    if (!candidate.refused.empty()) continue;
    const auto& algorithm = find_algorithm(call.collective, candidate.algorithm);
    if (refusal(algorithm, call, false).empty())
      fitting.push_back(&algorithm);
    else
      shared_is_faster |= fitting.empty();
  }
  if (fitting.size() < 2)
    return {Trial(fitting.empty() ? nullptr : fitting.front()), shared_is_faster};
  return {Trial(*fitting[0], *fitting[1], options_.trial_calls, kind_of(call)), shared_is_faster};
}

const Trial* Planner::known_trial(const Call& call) const {
  if (!takes_part(call)) return nullptr;
  const auto at = trials_.find(kind_of(call));
  if (at == trials_.end() || (at->second.shared_is_faster && key_of(call).shared)) return nullptr;
  return &at->second.trial;
}

// Made where there is none.
Trial* Planner::trial_for(const Call& call) {
  if (!takes_part(call)) return nullptr;
  const auto kind = kind_of(call);
  auto at = trials_.find(kind);
  if (at == trials_.end()) {
    if (trials_.size() >= kMostTrials) return nullptr;
    check(call);
    at = trials_.emplace(kind, make_trial(call)).first;
  }
  if (at->second.shared_is_faster && key_of(call).shared) return nullptr;
  return &at->second.trial;
}

Trial* Planner::trial_under_way(const Call& call) {
  auto* const trial = trial_for(call);
  return trial == nullptr || trial->is_over() ? nullptr : trial;
}

// The next call of a trial is not the same again.
Planned& Planner::plan_tried(const Call& call, const Algorithm& algorithm) {
  last_ = nullptr;
  auto key = key_of(call);
  key.tried = &algorithm;
  return planned_for(key, call);
}

Planned& Planner::plan_exchange(Trial& trial) {
  last_ = nullptr;
  const auto times = trial.times();
  const Call call{.collective = Collective::allreduce,
                  .dtype = DType::u64,
                  .op = ReduceOp::max,
                  .input = times.data(),
                  .output = times.data(),
                  .count = times.size()};
  return planned_for(key_of(call), call);
}

}  // namespace sinew
