#include "model/critical_path.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

namespace sinew {
namespace {

struct Finish {
  Picoseconds at = 0;
  std::size_t index = 0;
  bool sender = false;  // it is the sender that was done then
  friend auto operator<=>(const Finish&, const Finish&) = default;  // NOLINT(modernize-use-nullptr)
};

bool is_message(const Activity& activity) { return activity.op == Op::send && activity.peer >= 0; }

/// What each rank has finished, by time.
class Finished {
 public:
  explicit Finished(std::span<const Activity> all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& one = all[i];
      if (one.sent > one.begin) by_rank_[one.rank].push_back({one.sent, i, true});
      if (is_message(one) && one.end > one.begin) by_rank_[one.peer].push_back({one.end, i, false});
    }
    for (auto& [rank, finishes] : by_rank_) std::sort(finishes.begin(), finishes.end());
  }
  /// The last thing that a rank finished up to `at`.
  [[nodiscard]] const Finish* before(std::int32_t rank, Picoseconds at) const {
    const auto found = by_rank_.find(rank);
    if (found == by_rank_.end()) return nullptr;
    const auto& finishes = found->second;
    const auto next = std::upper_bound(finishes.begin(), finishes.end(), at,
                                       [](Picoseconds a, const Finish& b) { return a < b.at; });
    return next == finishes.begin() ? nullptr : &*std::prev(next);
  }

 private:
  std::unordered_map<std::int32_t, std::vector<Finish>> by_rank_;
};

// Whose earlier doings something had to wait for, and until when.
struct Cause {
  std::int32_t one = -1, other = -1;
  Picoseconds at = 0;
};

Cause cause_of(const Activity& activity, bool sender) {
  if (!is_message(activity))
    return {activity.peer >= 0 ? activity.peer : activity.rank, -1, activity.begin};
  if (!activity.eager) return {activity.rank, activity.peer, activity.begin};
  if (!sender && activity.end > activity.sent)  // it had left, and found its port occupied
    return {activity.peer, -1, activity.end - activity.cost.alpha - activity.cost.beta};
  return {activity.rank, -1, activity.begin};
}

// The step before on the chain, if there is one.
const Finish* before(const Finished& finished, const Cause& cause) {
  const auto* one = finished.before(cause.one, cause.at);
  const auto* other = cause.other < 0 ? nullptr : finished.before(cause.other, cause.at);
  if (one == nullptr || other == nullptr) return one == nullptr ? other : one;
  return one->at < other->at ? other : one;
}

std::vector<Waiting> waiting_of(std::span<const Activity> all) {
  std::map<std::int32_t, std::vector<const Activity*>> by_rank;
  for (const auto& activity : all) {
    by_rank[activity.rank].push_back(&activity);
    if (is_message(activity)) by_rank[activity.peer].push_back(&activity);
  }
  std::map<std::pair<std::int32_t, std::int32_t>, Picoseconds> sums;
  for (auto& [rank, own] : by_rank) {
    std::stable_sort(own.begin(), own.end(),
                     [](const auto* a, const auto* b) { return a->begin < b->begin; });
    Picoseconds free = 0;
    for (const auto* each : own) {
      const auto other = each->rank == rank ? each->peer : each->rank;
      if (each->begin > free && other >= 0) sums[{rank, other}] += each->begin - free;
      free = std::max(free, each->rank == rank ? each->sent : each->end);
    }
  }
  std::vector<Waiting> waiting;
  for (const auto& [pair, time] : sums) waiting.push_back({pair.first, pair.second, time});
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const Waiting& a, const Waiting& b) { return a.time > b.time; });
  return waiting;
}

}  // namespace

CriticalPath critical_path(std::span<const Activity> activities) {
  CriticalPath path;
  if (activities.empty()) return path;
  const Finished finished(activities);
  const auto last =
      std::max_element(activities.begin(), activities.end(),
                       [](const Activity& a, const Activity& b) { return a.end < b.end; });
  path.end = last->end;
  Finish at{last->end, static_cast<std::size_t>(last - activities.begin()), false};
  while (true) {
    auto step = activities[at.index];
    const auto* earlier = before(finished, cause_of(step, at.sender));
    step.end = at.at;  // of an eager message that its sender was done with: no more of it matters
    path.steps.push_back(step);
    if (earlier == nullptr || earlier->at >= at.at) break;
    at = *earlier;
  }
  std::reverse(path.steps.begin(), path.steps.end());
  path.waiting = waiting_of(activities);
  return path;
}

}  // namespace sinew
