#include "model/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include <sinew/error.hpp>

namespace sinew {
namespace {

Moment after(Moment moment, const Cost& cost) {
  moment.at += cost.alpha + cost.beta;
  moment.alpha += cost.alpha;
  moment.beta += cost.beta;
  return moment;
}

Moment worked(Moment moment, const Cost& cost) {
  moment.at += cost.alpha + cost.beta;
  moment.gamma += cost.alpha + cost.beta;
  return moment;
}

}  // namespace

Machine::Machine(const Workload& workload, const Network& network, const SimulateOptions& options,
                 std::uint32_t passes, std::uint32_t slices)
    : workload_(workload),
      network_(network),
      passes_(passes),
      collapsed_(options.collapse && workload.symmetry != Symmetry::none),
      slices_(slices),
      ranks_(collapsed_ ? 1 : static_cast<std::size_t>(workload.size)) {
  if (options.shuffle_seed != 0) shuffle_ = std::make_unique<std::mt19937_64>(options.shuffle_seed);
}

Simulated Machine::run() {
  const auto count = static_cast<std::int32_t>(ranks_.size());
  std::vector<std::int32_t> order(ranks_.size());
  std::iota(order.begin(), order.end(), 0);
  if (shuffle_) std::shuffle(order.begin(), order.end(), *shuffle_);
  for (std::int32_t i = 0; i < count; ++i) {
    queue(order[static_cast<std::size_t>(i)]);
    while (!ready_.empty()) {
      const auto at = shuffle_ ? (*shuffle_)() % ready_.size() : ready_.size() - 1;
      std::swap(ready_[at], ready_.back());
      const auto id = ready_.back();
      ready_.pop_back();
      advance(id);
    }
  }
  return finish();
}

void Machine::start(std::int32_t id) {
  auto& rank = rank_at(id);
  rank.started = true;
  rank.program = compile(workload_.schedule(id), workload_.in_place);
  if (rank.program.board_ops && !network_.board)
    throw Error(Errc::unsupported,
                "this algorithm needs shared memory, and the network model has no [board]");
  const auto chunks = rank.program.message_chunks;
  chunk_ = chunks == 0 ? 0 : workload_.bytes / chunks / slices_;
  count(rank);
  rank.lanes.resize(rank.program.channels);
  Moment begin;
  begin.at = begin.alpha = Curve(network_.call_ps, 0).at(0).alpha;
  for (std::uint32_t channel = 0; channel < rank.program.channels; ++channel) {
    rank.lanes[channel].ready = begin;
    enter_round(rank, channel);
  }
  find_next(rank, rank.out, true);
  find_next(rank, rank.in, false);
}

void Machine::count(const Rank& rank) {
  double sent = 0, received = 0, shared = 0;
  for (const auto& item : rank.program.items) {
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

void Machine::advance(std::int32_t id) {
  auto& rank = rank_at(id);
  rank.queued = false;
  if (!rank.started) start(id);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t channel = 0; channel < rank.program.channels; ++channel)
      moved |= advance_lane(id, rank, channel);
    moved |= advance_out(id, rank);
    moved |= advance_in(id, rank);
  }
}

// The next round of a channel, or its first one in the next pass, or the end.
void Machine::enter_round(Rank& rank, std::uint32_t channel) {
  const auto& items = rank.program.items;
  const auto size = static_cast<std::uint32_t>(items.size());
  auto& lane = rank.lanes[channel];
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
  if (!rank.program.board_ops) return;
  const auto position =
      std::uint64_t{lane.pass} * rank.program.rounds + rank.program.items[lane.begin].round;
  rank.marks.push_back({position, lane.ready});
  for (const auto waiter : rank.waiters) queue(waiter);
  rank.waiters.clear();
}

bool Machine::advance_lane(std::int32_t id, Rank& rank, std::uint32_t channel) {
  auto& lane = rank.lanes[channel];
  const auto& items = rank.program.items;
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

// A step without messages. False: it waits for somebody's round.
bool Machine::work_alone(std::int32_t id, Rank& rank, Lane& lane, const Item& item) {
  const auto& board = network_.board;
  const double bytes = bytes_of(item);
  const auto pass_begin = std::uint64_t{lane.pass} * rank.program.rounds;
  Moment start = lane.work;
  const auto work = [&](const Curve& curve) {
    if (item.chunks == 0) return;  // a word, not data
    const auto cost = curve.at(bytes);
    start = worked(start, cost);
    rank.computing += cost.alpha + cost.beta;
  };
  const auto wait = [&](std::uint64_t position, double notice_ps) {
    Moment others;
    if (!wait_for(id, rank, item, position, others)) return false;
    start = std::max(start, after(others, Curve(notice_ps, 0).at(0)));
    return true;
  };
  switch (item.kind()) {
    case Op::copy:
      work(network_.copy);
      break;
    case Op::reduce:
      work(network_.reduce);
      break;
    case Op::publish:
      // The slot before last must have been read; whoever sees that needs no further notice.
      if (lane.pass >= 2 && !wait(pass_begin - rank.program.rounds, 0)) return false;
      work(board->publish);
      break;
    case Op::gather_copy:
    case Op::gather_reduce:
    case Op::gather_reduce_all: {
      if (!wait(pass_begin + item.round, board->wait_ps)) return false;
      const auto others = item.peer >= 0 ? 1 : members(rank, item) - 1;
      const bool everywhere = item.kind() == Op::gather_reduce_all;
      for (std::size_t i = 0; i < others; ++i) work(board->gather);
      if (item.kind() != Op::gather_copy) work(network_.reduce);
      for (std::size_t i = 0; everywhere && i < others; ++i) work(board->publish);
      break;
    }
    case Op::send:
    case Op::recv:
    case Op::recv_reduce:
      break;
  }
  lane.work = start;
  lane.done = std::max(lane.done, start);
  return true;
}

std::size_t Machine::members(const Rank& rank, const Item& item) const {
  if (item.peer >= -1) return static_cast<std::size_t>(workload_.size);
  return rank.program.groups[static_cast<std::size_t>(-2 - item.peer)].size();
}

// When all whom `item` waits for are past every round before `position`.
bool Machine::wait_for(std::int32_t id, Rank& rank, const Item& item, std::uint64_t position,
                       Moment& when) {
  if (item.peer >= 0) return passed(id, item.peer, position, when);
  if (item.peer < -1) {
    const auto& group = rank.program.groups[static_cast<std::size_t>(-2 - item.peer)];
    return std::all_of(group.begin(), group.end(),
                       [&](int member) { return passed(id, member, position, when); });
  }
  for (std::int32_t member = 0; member < workload_.size; ++member)
    if (!passed(id, member, position, when)) return false;
  return true;
}

bool Machine::passed(std::int32_t id, std::int32_t member, std::uint64_t position, Moment& when) {
  if (member == id) return true;
  auto& other = rank_at(member);
  if (!other.started) {
    other.waiters.push_back(id);
    queue(member);
    return false;
  }
  for (const auto& lane : other.lanes) {
    if (lane.begin >= other.program.items.size()) continue;
    const auto at =
        std::uint64_t{lane.pass} * other.program.rounds + other.program.items[lane.begin].round;
    if (at >= position) continue;
    other.waiters.push_back(id);
    return false;
  }
  for (const auto& mark : other.marks)
    if (mark.position < position) when = std::max(when, mark.when);
  return true;
}

// The next message of a port's direction, in this pass or the next.
void Machine::find_next(const Rank& rank, Port& port, bool sends) const {
  const auto& items = rank.program.items;
  while (true) {
    while (port.at < items.size() && !(sends ? items[port.at].sends() : items[port.at].receives()))
      ++port.at;
    if (port.at < items.size()) port.item = items[port.at];
    if (port.at < items.size() || port.pass + 1 >= passes_) return;
    ++port.pass;
    port.at = 0;
  }
}

Cost Machine::message_cost(const Lane& lane, const Item& item) {
  const bool both = lane.exchanges && !network_.exchange.is_free();
  outcome_.used_exchange |= both;
  return (both ? network_.exchange : network_.one_way).at(bytes_of(item));
}

std::int32_t Machine::mirror(std::int32_t peer) const noexcept {
  return workload_.symmetry == Symmetry::flip || peer == 0 ? peer : workload_.size - peer;
}

bool Machine::is_match(std::int32_t sender, const Item& send, std::int32_t receiver,
                       const Item& receive) const noexcept {
  if (send.channel != receive.channel) return false;
  if (collapsed_) return send.peer == mirror(receive.peer);
  return send.peer == receiver && receive.peer == sender;
}

bool Machine::advance_out(std::int32_t id, Rank& rank) {
  auto& port = rank.out;
  if (port.waits || port.at >= rank.program.items.size()) return false;
  const auto item = port.item;
  const auto& lane = rank.lanes[item.channel];
  if (lane.pass != port.pass || port.at < lane.begin || port.at >= lane.end) return false;
  port.bound = std::max(lane.ready, port.free);
  // Where rank 0 stands for all, what it sends to one side is what it gets from the other.
  const Route route =
      collapsed_ ? Route{mirror(item.peer), 0, item.channel} : Route{id, item.peer, item.channel};
  auto& peer = rank_at(route.to);
  const bool awaited =
      peer.in.waits && !mail_.has(route) && is_match(id, item, route.to, peer.in.item);
  if (bytes_of(item) <= network_.eager_bytes) {
    outcome_.used_eager = true;
    const auto cost = message_cost(lane, item);
    const Letter letter{port.bound, cost};
    end_send(rank, after(port.bound, cost), cost.alpha + cost.beta);
    if (awaited) {
      receive(peer, letter);
    } else {
      mail_.put(route, letter);
    }
    if (awaited || !peer.started) queue(route.to);
    return true;
  }
  port.waits = true;
  if (!peer.started) queue(route.to);
  if (!awaited) return false;
  transfer(rank, peer);
  queue(route.to);
  return true;
}

bool Machine::advance_in(std::int32_t id, Rank& rank) {
  auto& port = rank.in;
  if (port.at >= rank.program.items.size()) return false;
  const auto item = port.item;
  const auto& lane = rank.lanes[item.channel];
  if (lane.pass != port.pass || port.at < lane.begin || port.at >= lane.end) return false;
  port.bound = std::max(lane.ready, port.free);
  if (const Route route{item.peer, id, item.channel}; mail_.has(route)) {
    receive(rank, mail_.take(route));
    return true;
  }
  auto& peer = rank_at(item.peer);
  port.waits = true;
  if (!peer.started) queue(collapsed_ ? 0 : item.peer);
  if (!peer.out.waits || !is_match(item.peer, peer.out.item, id, item)) return false;
  transfer(peer, rank);
  queue(collapsed_ ? 0 : item.peer);
  return true;
}

// Both ends have come: the message starts when the later of them can.
void Machine::transfer(Rank& sender, Rank& receiver) {
  const auto& item = sender.out.item;
  const auto cost = message_cost(sender.lanes[item.channel], item);
  const auto end = after(std::max(sender.out.bound, receiver.in.bound), cost);
  end_send(sender, end, cost.alpha + cost.beta);
  end_receive(receiver, end, end, cost.alpha + cost.beta);
}

// An eager message goes through the port as soon as that is free, even if its receiver comes later.
void Machine::receive(Rank& rank, const Letter& letter) {
  const auto arrival = after(std::max(letter.start, rank.in.free), letter.cost);
  const auto& lane = rank.lanes[rank.in.item.channel];
  end_receive(rank, arrival, std::max(arrival, lane.ready), letter.cost.alpha + letter.cost.beta);
}

void Machine::end_send(Rank& rank, Moment end, Picoseconds busy) {
  auto& port = rank.out;
  auto& lane = rank.lanes[port.item.channel];
  port.free = end;
  port.waits = false;
  port.busy += busy;
  lane.done = std::max(lane.done, end);
  --lane.open;
  ++port.at;
  find_next(rank, port, true);
}

void Machine::end_receive(Rank& rank, const Moment& arrival, Moment end, Picoseconds busy) {
  auto& port = rank.in;
  const auto item = port.item;
  auto& lane = rank.lanes[item.channel];
  port.free = arrival;
  port.waits = false;
  port.busy += busy;
  if (item.kind() == Op::recv_reduce) {
    const auto cost = network_.reduce.at(bytes_of(item));
    end = worked(std::max({end, lane.work, rank.combined}), cost);
    rank.combined = end;
    rank.computing += cost.alpha + cost.beta;
  }
  lane.done = std::max(lane.done, end);
  --lane.open;
  ++port.at;
  find_next(rank, port, false);
}

Simulated Machine::finish() {
  for (const auto& rank : ranks_)
    for (const auto& lane : rank.lanes) {
      if (lane.begin < rank.program.items.size()) refuse_circle();
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
  return outcome_;
}

void Machine::refuse_circle() const {
  for (std::size_t id = 0; id < ranks_.size(); ++id)
    for (const auto& lane : ranks_[id].lanes) {
      const auto& items = ranks_[id].program.items;
      if (lane.begin >= items.size()) continue;
      throw Error(Errc::not_verified,
                  fmt::format("rank {} never gets past round {}: ranks wait for each other in a "
                              "circle, or for a message that nobody sends; `sinew verify` shows it",
                              id, static_cast<std::uint32_t>(items[lane.begin].round)));
    }
  throw Error(Errc::not_verified, "ranks wait for each other in a circle");
}

}  // namespace sinew
