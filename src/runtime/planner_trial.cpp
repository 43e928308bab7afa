// What of the planner is about trials: which calls take part, which algorithms, and the plans.
#include <algorithm>
#include <array>
#include <utility>

#include "runtime/planner.hpp"
#include "transport/board.hpp"
#include "transport/descriptor.hpp"

namespace sinew {
namespace {

// Whoever calls with ever new counts gets what is predicted fastest for those beyond: trials that
// never end cost more than they find.
constexpr std::size_t kMostTrials = 256;

// Unasked: shorter calls are over before a clock says much about them, and what is predicted to
// take longer than this times the best would cost more than it can win.
constexpr std::size_t kLeastNeutralBytes = 4096;
constexpr double kMostTimesBest = 4;
// Messages where ranks share cores: they return as ranks get their turns, so that a call says
// little about what all of them take; only what is predicted to be about as fast may win by that.
constexpr double kMostTimesBestCrowded = 1.5;
// Another of a way takes part as well, if it is predicted to take no longer than this times the
// best of it.
constexpr double kNearlyTheSame = 1.15;

/// How bytes get from one rank to another.
enum class Way : std::uint8_t { messages, slots, others_memory };

Way way_of(const Algorithm& algorithm, const Place& place) {
  if (algorithm.fits(place, {})) return Way::messages;
  const bool slots = algorithm.fits(place, {.board = true, .across_nodes = true}) ||
                     algorithm.fits(place, {.board = true});
  return slots ? Way::slots : Way::others_memory;
}

bool is_ragged(const Call& call) noexcept { return call.counts.data() != nullptr; }

}  // namespace

std::size_t Planner::KindHash::operator()(const Kind& kind) const noexcept { return hash_of(kind); }

// Answers alike on all ranks. Where there is nothing to move, there is nothing to win.
bool Planner::takes_part(const Call& call) const noexcept {
  if (trial_calls_ == 0 || !wanted_algorithm(call).empty()) return false;
  if (!tries_any_) return large_bytes(call) >= kLeastNeutralBytes;
  return large_bytes(call) > 0 || call.collective == Collective::barrier;
}

// The best of each way, then others that are as good, as long as they combine in rank order or not
// at all: all of them give the same bits. Which algorithms are good of a way is predicted well;
// which way is, on a machine that nobody has calibrated, is not.
std::vector<const Algorithm*> Planner::neutral(const Call& call,
                                               std::span<const Predicted> fitting) const {
  std::vector<const Algorithm*> chosen;
  if (fitting.empty() || !fitting.front().algorithm->traits.rank_order) return chosen;
  const bool crowded = transport_.size() > transport_.cores();
  std::array<double, 3> best_us{};  // of each way; 0: none yet
  for (const bool first : {true, false})
    for (const auto& [algorithm, us] : fitting) {
      const auto way = way_of(*algorithm, place_for(*algorithm, call));
      auto& best = best_us[static_cast<std::size_t>(way)];
      const double most = crowded && way == Way::messages ? kMostTimesBestCrowded : kMostTimesBest;
      const bool suits = algorithm->traits.rank_order && us <= most * fitting.front().us;
      const bool wanted = first ? best == 0 : us <= kNearlyTheSame * best;
      if (!suits || !wanted || chosen.size() == kMostTried ||
          std::find(chosen.begin(), chosen.end(), algorithm) != chosen.end())
        continue;
      if (first) best = us;
      chosen.push_back(algorithm);
    }
  return chosen;
}

// Whether buffers lie in memory that all share is a rank's own affair, so the two are those for
// buffers anywhere. Where an algorithm for such memory is the fastest, all must use that, as
// without trials, and one that does not is told.
Planner::Tried Planner::make_trial(const Call& call) const {
  std::vector<Predicted> fitting;
  bool shared_is_faster = false;
  for (const auto& candidate : predicted_best(call, true)) {
    if (!candidate.refused.empty()) continue;
    const auto& algorithm = find_algorithm(call.collective, candidate.algorithm);
    if (refusal(algorithm, call, false).empty())
      fitting.push_back({&algorithm, candidate.predicted_us});
    else
      shared_is_faster |= fitting.empty();
  }
  std::vector<const Algorithm*> tried;
  if (tries_any_)
    for (const auto& one : std::span(fitting).first(std::min<std::size_t>(2, fitting.size())))
      tried.push_back(one.algorithm);
  else
    tried = neutral(call, fitting);
  if (tried.size() < 2) {
    const auto* const only = fitting.empty() ? nullptr : fitting.front().algorithm;
    return {std::make_shared<Trial>(only), shared_is_faster};
  }
  return {std::make_shared<Trial>(tried, trial_calls_, kind_of(call)), shared_is_faster};
}

const Trial* Planner::known_trial(const Call& call) const {
  if (!takes_part(call)) return nullptr;
  const auto at = trials_.find(kind_of(call));
  if (at == trials_.end() || (at->second.shared_is_faster && key_of(call).shared)) return nullptr;
  return at->second.trial.get();
}

// Made where there is none. Asked once for a call, however it was started, because it counts.
const std::shared_ptr<Trial>* Planner::trial_for(const Call& call) {
  if (!takes_part(call)) return nullptr;
  const auto kind = kind_of(call);
  auto at = trials_.find(kind);
  if (at == trials_.end()) {
    // Parts of sizes that never come again are no kind of call.
    if (is_ragged(call) && !counts_are_private(call) &&
        std::exchange(last_ragged_, kind.count) != kind.count)
      return nullptr;
    if (trials_.size() >= kMostTrials) return nullptr;
    check(call);
    at = trials_.emplace(kind, make_trial(call)).first;
    if (at->second.trial->sides() > 1) ++kinds_tried_;
  }
  if (at->second.shared_is_faster && key_of(call).shared) return nullptr;
  return &at->second.trial;
}

const std::shared_ptr<Trial>* Planner::trial_under_way(const Call& call) {
  const auto* const trial = trial_for(call);
  return trial == nullptr || (*trial)->is_over() ? nullptr : trial;
}

// Which have asked depends on the calls that were started, as on all ranks; which are over does
// not. So one that calls still wait for stays theirs, and another takes its place.
void Planner::begin_trials_again(std::uint32_t calls_before) {
  if (!tries_any_)  // what was asked for is a number of calls
    for (auto& [kind, tried] : trials_) {
      auto& trial = tried.trial;
      if (trial->sides() < 2 || !trial->has_asked()) continue;
      if (trial.use_count() > 1) trial = std::make_shared<Trial>(*trial);
      trial->begin_again();
    }
  reviewed_ = calls_before;
  last_ = nullptr;
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
