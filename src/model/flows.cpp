#include "model/flows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace sinew {

Flows::Flows(const std::vector<double>& capacities) : lines_(capacities.size()) {
  for (std::size_t i = 0; i < lines_.size(); ++i) lines_[i].capacity = capacities[i];
}

Flows::Id Flows::start(Picoseconds begin, double bytes, Picoseconds alone,
                       std::span<const std::uint32_t> links) {
  if (spare_.empty()) {
    spare_.push_back(static_cast<Id>(flows_.size()));
    flows_.emplace_back();
    places_.resize(flows_.size() * kPlaces);
  }
  const auto id = spare_.back();
  spare_.pop_back();
  auto& flow = flows_[id];
  flow = {};
  flow.state = State::waits;
  flow.work = static_cast<double>(alone);
  flow.own_rate = bytes / flow.work;
  flow.end = std::max(begin, now_);
  flow.places = static_cast<std::uint32_t>(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) places_of(id)[i] = {links[i], 0};
  queue_.push({flow.end, id});
  ++started_;
  return id;
}

const std::vector<Flows::Id>& Flows::advance() {
  spare_.insert(spare_.end(), ended_.begin(), ended_.end());
  ended_.clear();
  while (true) {
    happen();
    if (!ended_.empty()) return ended_;
    settle();
    drop_stale();
    if (queue_.empty()) return ended_;
    now_ = queue_.top().at;
  }
}

// Everything of this moment, before rates are computed again.
void Flows::happen() {
  for (drop_stale(); !queue_.empty() && queue_.top().at == now_; drop_stale()) {
    const auto id = queue_.top().flow;
    queue_.pop();
    if (flows_[id].state == State::waits)
      enter(id);
    else
      leave(id);
  }
}

void Flows::drop_stale() {
  while (!queue_.empty()) {
    const auto& flow = flows_[queue_.top().flow];
    if (flow.state != State::none && flow.end == queue_.top().at) return;
    queue_.pop();
  }
}

void Flows::touch(std::uint32_t line) {
  if (lines_[line].dirty) return;
  lines_[line].dirty = true;
  dirty_.push_back(line);
}

void Flows::enter(Id id) {
  auto& flow = flows_[id];
  flow.state = State::moves;
  flow.since = now_;
  flow.end = -1;
  const auto places = places_of(id);
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    auto& users = lines_[places[i].link].users;
    places[i].at = static_cast<std::uint32_t>(users.size());
    users.push_back({id, i});
    touch(places[i].link);
  }
}

void Flows::leave(Id id) {
  for (const auto& place : places_of(id)) {
    auto& users = lines_[place.link].users;
    const auto last = users.back();
    users[place.at] = last;
    places_of(last.flow)[last.place].at = place.at;
    users.pop_back();
    touch(place.link);
  }
  flows_[id].state = State::none;
  ended_.push_back(id);
}

void Flows::settle() {
  ++epoch_;
  for (const auto line : dirty_) {
    lines_[line].dirty = false;
    if (lines_[line].seen == epoch_) continue;
    collect(line);
    solve();
    apply();
  }
  dirty_.clear();
}

// All that depend on a link: its users, the links that those pass, the users of these, ...
void Flows::collect(std::uint32_t line) {
  some_flows_.clear();
  some_lines_.assign(1, line);
  lines_[line].seen = epoch_;
  for (std::size_t i = 0; i < some_lines_.size(); ++i)
    for (const auto& user : lines_[some_lines_[i]].users) {
      auto& flow = flows_[user.flow];
      if (flow.seen == epoch_) continue;
      flow.seen = epoch_;
      flow.frozen = false;
      some_flows_.push_back(user.flow);
      for (const auto& place : places_of(user.flow)) {
        if (lines_[place.link].seen == epoch_) continue;
        lines_[place.link].seen = epoch_;
        some_lines_.push_back(place.link);
      }
    }
}

// Rates from the lowest up: whatever is tightest next, a flow's own rate or a link's fair share, is
// final. Links of one value take the same amount off others in any order, so that the result does
// not depend on the order in which flows have come.
void Flows::solve() {
  limits_.clear();
  for (const auto at : some_lines_) {
    auto& line = lines_[at];
    line.left = line.capacity;
    line.open = static_cast<std::uint32_t>(line.users.size());
    if (line.open > 0) limits_.push_back({line.capacity / line.open, at});
  }
  std::make_heap(limits_.begin(), limits_.end(), std::greater<>());
  const auto slower = [&](Id a, Id b) { return flows_[a].own_rate < flows_[b].own_rate; };
  if (!std::is_sorted(some_flows_.begin(), some_flows_.end(), slower))
    std::sort(some_flows_.begin(), some_flows_.end(), slower);
  std::size_t next = 0;
  double rate = 0;
  while (true) {
    while (next < some_flows_.size() && flows_[some_flows_[next]].frozen) ++next;
    if (next == some_flows_.size()) return;
    const double own = flows_[some_flows_[next]].own_rate;
    const auto tightest = limits_.front();
    if (own <= tightest.rate) {
      rate = std::max(rate, own);
      freeze(some_flows_[next], own);
      continue;
    }
    std::pop_heap(limits_.begin(), limits_.end(), std::greater<>());
    limits_.pop_back();
    auto& line = lines_[tightest.line];
    if (line.open == 0) continue;
    const double share = std::max(line.left / line.open, rate);
    if (share > tightest.rate) {  // others have left it more since
      limits_.push_back({share, tightest.line});
      std::push_heap(limits_.begin(), limits_.end(), std::greater<>());
      continue;
    }
    rate = share;
    for (const auto& user : line.users)
      if (!flows_[user.flow].frozen) freeze(user.flow, share);
  }
}

void Flows::freeze(Id id, double rate) {
  auto& flow = flows_[id];
  flow.frozen = true;
  // Costs are whole picoseconds, so that rates of equal links differ in their last digits.
  flow.next = rate >= flow.own_rate * (1 - 1e-9) ? 1 : rate / flow.own_rate;
  for (const auto& place : places_of(id)) {
    auto& line = lines_[place.link];
    line.left -= rate;
    --line.open;
  }
}

void Flows::apply() {
  for (const auto id : some_flows_) {
    auto& flow = flows_[id];
    if (flow.next == flow.share) continue;
    flow.work -= static_cast<double>(now_ - flow.since) * flow.share;
    flow.since = now_;
    flow.share = flow.next;
    flow.end = now_ + std::llround(std::max(flow.work, 0.0) / flow.share);
    queue_.push({flow.end, id});
  }
}

}  // namespace sinew
