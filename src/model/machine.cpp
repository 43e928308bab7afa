#include "model/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include <sinew/error.hpp>

namespace sinew {
Machine::Machine(const Workload& workload, const Network& network, const SimulateOptions& options,
                 std::uint32_t passes, std::uint32_t slices)
    : workload_(workload),
      network_(network),
      options_(options),
      passes_(passes),
      wiring_(network, workload.size),
      collapsed_(options.collapse && workload.symmetry != Symmetry::none && wiring_.is_uniform()),
      slices_(slices),
      programs_(workload.size, workload.symmetry),
      ranks_(collapsed_ ? 1 : static_cast<std::size_t>(workload.size)),
      flows_(wiring_.capacities()) {
  if (options.shuffle_seed != 0) shuffle_ = std::make_unique<std::mt19937_64>(options.shuffle_seed);
}

Simulated Machine::run() {
  const auto count = static_cast<std::int32_t>(ranks_.size());
  std::vector<std::int32_t> order(ranks_.size());
  std::iota(order.begin(), order.end(), 0);
  if (shuffle_) std::shuffle(order.begin(), order.end(), *shuffle_);
  // Nobody starts a rank because a peer waits for it: in order, blocks of neighbours get as far as
  // they can among themselves while they are in the cache.
  for (std::int32_t i = 0; i < count; ++i) {
    queue(order[static_cast<std::size_t>(i)]);
    drain();
  }
  while (true) {
    const auto& ended = flows_.advance();
    if (ended.empty()) return finish();
    for (const auto id : ended) {
      arrive(moving_[id], flows_.now());
      queue(moving_[id].from);
      queue(moving_[id].to);
    }
    drain();
  }
}

// Wave by wave: who moved comes first in the next one, then whom they met. A block of ranks that
// meets another is so visited in order, as memory likes it.
void Machine::drain() {
  while (!ready_.empty()) {
    wave_.swap(ready_);
    if (shuffle_) std::shuffle(wave_.begin(), wave_.end(), *shuffle_);
    std::size_t moved = 0;
    for (const auto id : wave_) {
      if (!advance(id) || rank_at(id).queued) continue;
      rank_at(id).queued = true;
      wave_[moved++] = id;
    }
    wave_.resize(moved);
    wave_.insert(wave_.end(), ready_.begin(), ready_.end());
    ready_.clear();
    wave_.swap(ready_);
  }
}

void Machine::start(std::int32_t id) {
  auto& rank = rank_at(id);
  rank.started = true;
  rank.id = id;
  rank.program = &programs_.keep(compile(workload_.schedule(id), workload_.in_place), id);
  if (rank.program->board_ops && !network_.board)
    throw Error(Errc::unsupported,
                "this algorithm needs shared memory, and the network model has no [board]");
  const auto chunks = rank.program->message_chunks;
  chunk_ = chunks == 0 ? 0 : workload_.bytes / chunks / slices_;
  count(rank);
  rank.more_lanes.resize(rank.program->channels - 1);
  Moment begin;
  begin.at = begin.alpha = whole_ps(network_.call_ps, 0);
  begin.at += wiring_.delay(id);
  for (std::uint32_t channel = 0; channel < rank.program->channels; ++channel) {
    rank.lane(channel).ready = begin;
    enter_round(rank, channel);
  }
  find_next(rank, rank.out, true);
  find_next(rank, rank.in, false);
}

void Machine::count(const Rank& rank) {
  double sent = 0, received = 0, shared = 0;
  for (const auto& item : rank.program->items) {
    const double bytes = bytes_of(item) * slices_;
    if (item.sends()) ++outcome_.messages, sent += bytes;
    if (item.receives()) received += bytes;
    if (item.kind() == Op::gather_copy) shared += bytes;
    if (item.kind() == Op::gather_reduce || item.kind() == Op::gather_reduce_all)
      shared += bytes * static_cast<double>(members(rank, item) - 1);
  }
  outcome_.bytes_sent += sent;
  outcome_.bytes_received += received;
  outcome_.busiest_bytes = std::max(outcome_.busiest_bytes, sent);
  outcome_.shared_bytes = std::max(outcome_.shared_bytes, shared);
}

void Machine::queue(std::int32_t id) {
  auto& rank = rank_at(id);
  if (rank.queued) return;
  rank.queued = true;
  ready_.push_back(id);
}

bool Machine::advance(std::int32_t id) {
  auto& rank = rank_at(id);
  rank.queued = false;
  if (!rank.started) start(id);
  bool moved = false;
  for (std::uint32_t channel = 0; channel < rank.program->channels; ++channel)
    moved |= advance_lane(id, rank, channel);
  moved |= advance_out(id, rank);
  moved |= advance_in(id, rank);
  return moved;
}

// The next round of a channel, or its first one in the next pass, or the end.
void Machine::enter_round(Rank& rank, std::uint32_t channel) {
  const auto& items = rank.program->items;
  const auto size = static_cast<std::uint32_t>(items.size());
  auto& lane = rank.lane(channel);
  const auto next_of = [&](std::uint32_t from) {
    while (from < size && items[from].channel != channel) ++from;
    return from;
  };
  lane.begin = next_of(lane.end);
  if (lane.begin == size && lane.pass + 1 < passes_) {
    ++lane.pass;
    lane.begin = next_of(0);
  }
  lane.end = lane.local = lane.begin;
  lane.open = 0;
  bool sends = false, receives = false;
  while (lane.end < size && items[lane.end].channel == channel &&
         items[lane.end].round == items[lane.begin].round) {
    const auto& item = items[lane.end++];
    sends |= item.sends();
    receives |= item.receives();
    lane.open += item.sends() || item.receives() ? 1 : 0;
  }
  lane.exchanges = sends && receives;
  lane.work = lane.done = lane.ready;
}

void Machine::leave_round(Rank& rank, Lane& lane) {
  lane.ready = lane.done;
  if (!rank.program->board_ops) return;
  const auto position =
      std::uint64_t{lane.pass} * rank.program->rounds + rank.program->items[lane.begin].round;
  rank.marks.push_back({position, lane.ready});
  for (const auto waiter : rank.waiters) queue(waiter);
  rank.waiters.clear();
}

bool Machine::advance_lane(std::int32_t id, Rank& rank, std::uint32_t channel) {
  auto& lane = rank.lane(channel);
  const auto& items = rank.program->items;
  bool moved = false;
  while (lane.begin < items.size()) {
    for (; lane.local < lane.end; ++lane.local) {
      const auto& item = items[lane.local];
      if (item.sends() || item.receives()) continue;
      if (!work_alone(id, rank, lane, item)) return moved;
      moved = true;
    }
    if (lane.open > 0) return moved;
    leave_round(rank, lane);
    enter_round(rank, channel);
    moved = true;
  }
  return moved;
}

Simulated Machine::finish() {
  for (const auto& rank : ranks_)
    for (std::uint32_t channel = 0; channel < rank.program->channels; ++channel) {
      const auto& lane = rank.lane(channel);
      if (lane.begin < rank.program->items.size()) refuse_circle();
      outcome_.end = std::max(outcome_.end, lane.ready);
    }
  double busy = 0;
  for (const auto& rank : ranks_)
    busy += static_cast<double>(
        std::min(outcome_.end.at, std::max(rank.out.busy, rank.in.busy) + rank.computing));
  const auto whole = static_cast<double>(outcome_.end.at) * static_cast<double>(ranks_.size());
  outcome_.idle = whole > 0 ? 1 - busy / whole : 0;
  if (collapsed_) {
    outcome_.messages *= static_cast<std::uint64_t>(workload_.size);
    outcome_.bytes_sent *= workload_.size;
    outcome_.bytes_received *= workload_.size;
  }
  outcome_.used_exchange = wiring_.used_exchange();
  outcome_.used_links = wiring_.used();
  outcome_.flows = flows_.started();
  return outcome_;
}

void Machine::refuse_circle() const {
  for (const auto& rank : ranks_)
    for (std::uint32_t channel = 0; channel < rank.program->channels; ++channel) {
      const auto& lane = rank.lane(channel);
      const auto& items = rank.program->items;
      if (lane.begin >= items.size()) continue;
      throw Error(Errc::not_verified,
                  fmt::format("rank {} never gets past round {}: ranks wait for each other in a "
                              "circle, or for a message that nobody sends; `sinew verify` shows it",
                              rank.id, static_cast<std::uint32_t>(items[lane.begin].round)));
    }
  throw Error(Errc::not_verified, "ranks wait for each other in a circle");
}

}  // namespace sinew
