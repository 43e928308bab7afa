#include "model/critical_path.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace sinew {
namespace {

struct Finish {
  Picoseconds at;
  std::size_t index;
  friend auto operator<=>(const Finish&, const Finish&) = default;
};

bool is_message(const Activity& activity) { return activity.op == Op::send && activity.peer >= 0; }

/// What each rank has finished, by time.
class Finished {
 public:
  explicit Finished(std::span<const Activity> all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      by_rank_[all[i].rank].push_back({all[i].sent, i});
      if (is_message(all[i])) by_rank_[all[i].peer].push_back({all[i].end, i});
    }
    for (auto& [rank, finishes] : by_rank_) std::sort(finishes.begin(), finishes.end());
  }
  /// The last thing that a rank finished up to `at`, of those before `index`.
  [[nodiscard]] const Finish* before(std::int32_t rank, Picoseconds at, std::size_t index) const {
    const auto found = by_rank_.find(rank);
    if (found == by_rank_.end()) return nullptr;
    const auto& finishes = found->second;
    auto next = std::upper_bound(finishes.begin(), finishes.end(), Finish{at, ~std::size_t{0}});
    while (next != finishes.begin())
      if ((--next)->index < index) return &*next;
    return nullptr;
  }

 private:
  std::unordered_map<std::int32_t, std::vector<Finish>> by_rank_;
};

// Whose earlier doings something had to wait for, and until when.
struct Cause {
  std::int32_t one = -1, other = -1;
  Picoseconds at = 0;
};

Cause cause_of(const Activity& activity) {
  if (!is_message(activity))
    return {activity.peer >= 0 ? activity.peer : activity.rank, -1, activity.begin};
  const auto took = activity.cost.alpha + activity.cost.beta;
  if (took > 0 &&
      activity.end > activity.sent)  // it had left, and found the receiver's port occupied
    return {activity.peer, -1, activity.end - took};
  return {activity.rank, activity.peer, activity.begin};
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
  auto last = std::max_element(activities.begin(), activities.end(),
                               [](const Activity& a, const Activity& b) { return a.end < b.end; });
  path.end = last->end;
  auto at = static_cast<std::size_t>(last - activities.begin());
  while (true) {
    path.steps.push_back(activities[at]);
    const auto cause = cause_of(activities[at]);
    const Finish* before = finished.before(cause.one, cause.at, at);
    if (cause.other >= 0) {
      const auto* beside = finished.before(cause.other, cause.at, at);
      if (before == nullptr || (beside != nullptr && *before < *beside)) before = beside;
    }
    if (before == nullptr) break;
    at = before->index;
  }
  std::reverse(path.steps.begin(), path.steps.end());
  // What takes no time explains nothing.
  std::erase_if(path.steps, [](const Activity& each) { return each.end == each.begin; });
  path.waiting = waiting_of(activities);
  return path;
}

}  // namespace sinew
