// Messages: two ports a rank, which serve them one after another.
#include <algorithm>

#include "model/machine.hpp"
#include "model/noise.hpp"

namespace sinew {
namespace {

constexpr std::uint64_t kMessages = 2, kCombining = 3;  // streams of random numbers

std::uint64_t place_in(std::uint32_t pass, std::uint32_t at) {
  return std::uint64_t{pass} << 32 | at;
}

}  // namespace

// The next message of a port's direction, in this pass or the next.
void Machine::find_next(const Rank& rank, Port& port, bool sends) const {
  const auto& items = rank.program->items;
  while (true) {
    while (port.at < items.size() && !(sends ? items[port.at].sends() : items[port.at].receives()))
      ++port.at;
    if (port.at < items.size()) {
      port.item = items[port.at];
      port.item.peer = programs_.peer(port.item, rank.id);
      return;
    }
    if (port.pass + 1 >= passes_) return;
    ++port.pass;
    port.at = 0;
  }
}

Leg Machine::leg_of(std::int32_t from, std::int32_t to, const Rank& sender) {
  const auto& item = sender.out.item;
  const double bytes = bytes_of(item);
  auto leg = wiring_.leg(from, to, bytes, sender.lane(item.channel).exchanges);
  if (network_.noise.deviation > 0) {
    const double factor =
        noise_factor(network_.noise,
                     random_key(network_.noise.seed, static_cast<std::uint64_t>(from), kMessages),
                     place_in(sender.out.pass, sender.out.at));
    leg.cost.alpha = whole_ps(static_cast<double>(leg.cost.alpha) * factor, bytes);
    leg.cost.beta = whole_ps(static_cast<double>(leg.cost.beta) * factor, bytes);
  }
  if (leg.cost.beta == 0) leg.count = 0;  // nothing that could share a link
  return leg;
}

std::int32_t Machine::mirror(std::int32_t peer) const noexcept {
  return workload_.symmetry == Symmetry::flip || peer == 0 ? peer : workload_.size - peer;
}

// Where rank 0 stands for all, what it sends to one side is what it gets from the other.
Route Machine::route_of(std::int32_t from, const Item& item) const noexcept {
  return collapsed_ ? Route{mirror(item.peer), 0, item.channel}
                    : Route{from, item.peer, item.channel};
}

bool Machine::is_match(std::int32_t sender, const Item& send, std::int32_t receiver,
                       const Item& receive) const noexcept {
  if (send.channel != receive.channel) return false;
  if (collapsed_) return send.peer == mirror(receive.peer);
  return send.peer == receiver && receive.peer == sender;
}

// Whether the receiver has come to this very message.
bool Machine::is_awaited(std::int32_t from, const Item& item, std::int32_t to) {
  const auto& port = rank_at(to).in;
  return port.waits && !port.moves && !mail_.has(route_of(from, item)) &&
         is_match(from, item, to, port.item);
}

bool Machine::advance_out(std::int32_t id, Rank& rank) {
  auto& port = rank.out;
  if (port.waits || port.moves || port.at >= rank.program->items.size()) return false;
  const auto& item = port.item;
  const auto& lane = rank.lane(item.channel);
  if (lane.pass != port.pass || port.at < lane.begin || port.at >= lane.end) return false;
  const auto to = route_of(id, item).to;
  if (bytes_of(item) <= network_.eager_bytes) {
    outcome_.used_eager = true;
    send_eagerly(id, to);
    return !port.moves;
  }
  port.waits = true;
  if (!is_awaited(id, item, to)) return false;
  transfer(id, to);
  if (port.moves) return false;
  queue(to);
  return true;
}

bool Machine::advance_in(std::int32_t id, Rank& rank) {
  auto& port = rank.in;
  if (port.moves || port.at >= rank.program->items.size()) return false;
  const auto& item = port.item;
  const auto& lane = rank.lane(item.channel);
  if (lane.pass != port.pass || port.at < lane.begin || port.at >= lane.end) return false;
  if (const Route route{item.peer, id, item.channel}; mail_.has(route)) {
    receive(id, rank, mail_.take(route));
    return true;
  }
  const auto& peer = rank_at(item.peer);
  port.waits = true;
  if (!peer.out.waits || peer.out.moves || !is_match(item.peer, peer.out.item, id, item))
    return false;
  const auto from = item.peer;
  transfer(from, id);
  if (port.moves) return false;
  queue(collapsed_ ? 0 : from);
  return true;
}

// Both ends have come: the message starts when the later of them can.
void Machine::transfer(std::int32_t from, std::int32_t to) {
  auto &sender = rank_at(from), &receiver = rank_at(to);
  const auto leg = leg_of(from, to, sender);
  const auto begin = std::max(sender.bound(sender.out), receiver.bound(receiver.in));
  const Moving moving{from, to, begin, leg.cost, false};
  if (leg.count == 0) {
    arrive(moving, after(moving.begin, leg.cost).at);
    return;
  }
  sender.out.moves = receiver.in.moves = true;
  move(moving, leg, bytes_of(sender.out.item));
}

// A message that leaves whether or not its receiver has come.
void Machine::send_eagerly(std::int32_t from, std::int32_t to) {
  auto& sender = rank_at(from);
  const auto leg = leg_of(from, to, sender);
  const Moving moving{from, to, sender.bound(sender.out), leg.cost, true};
  if (leg.count == 0) {
    arrive(moving, after(moving.begin, leg.cost).at);
    return;
  }
  sender.out.moves = true;
  move(moving, leg, bytes_of(sender.out.item));
}

void Machine::move(const Moving& moving, const Leg& leg, double bytes) {
  const auto id =
      flows_.start(moving.begin.at + leg.cost.alpha, bytes, leg.cost.beta, leg.shared());
  if (id >= moving_.size()) moving_.resize(id + 1);
  moving_[id] = moving;
}

// The last byte is through. What it took beyond its cost it waited for others on its links.
void Machine::arrive(const Moving& moving, Picoseconds at) {
  auto end = after(moving.begin, moving.cost);
  end.at = at;
  const auto busy = at - moving.begin.at;
  auto& sender = rank_at(moving.from);
  if (moving.eager) {
    const auto item = sender.out.item;
    const bool awaited = is_awaited(moving.from, item, moving.to);
    const Letter letter{end, moving.cost, moving.begin.at};
    const auto route = route_of(moving.from, item);
    end_send(sender, end, busy);
    if (awaited) {
      receive(moving.to, rank_at(moving.to), letter);
      queue(moving.to);
    } else {
      mail_.put(route, letter);
    }
  } else {
    auto& receiver = rank_at(moving.to);
    record({.rank = moving.from,
            .peer = moving.to,
            .op = Op::send,
            .round = sender.out.item.round,
            .bytes = bytes_of(sender.out.item),
            .begin = moving.begin.at,
            .sent = at,
            .end = at,
            .cost = moving.cost});
    end_send(sender, end, busy);
    end_receive(moving.to, receiver, end, end, busy);
  }
}

// An eager message goes through the port as soon as that is free, even if its receiver comes later.
void Machine::receive(std::int32_t id, Rank& rank, const Letter& letter) {
  const auto arrival = std::max(letter.end, after(rank.in.free, letter.cost));
  const auto& item = rank.in.item;
  record({.rank = item.peer,
          .peer = id,
          .op = Op::send,
          .round = item.round,
          .bytes = bytes_of(item),
          .begin = letter.begin,
          .sent = letter.end.at,
          .end = arrival.at,
          .cost = letter.cost,
          .eager = true});
  const auto& lane = rank.lane(item.channel);
  end_receive(id, rank, arrival, std::max(arrival, lane.ready),
              letter.cost.alpha + letter.cost.beta);
}

void Machine::end_send(Rank& rank, Moment end, Picoseconds busy) {
  auto& port = rank.out;
  auto& lane = rank.lane(port.item.channel);
  port.free = end;
  port.waits = port.moves = false;
  port.busy += busy;
  lane.done = std::max(lane.done, end);
  --lane.open;
  ++port.at;
  find_next(rank, port, true);
}

void Machine::end_receive(std::int32_t id, Rank& rank, const Moment& arrival, Moment end,
                          Picoseconds busy) {
  auto& port = rank.in;
  const auto item = port.item;
  auto& lane = rank.lane(item.channel);
  port.free = arrival;
  port.waits = port.moves = false;
  port.busy += busy;
  if (item.kind() == Op::recv_reduce) {
    const auto cost = work_cost(id, network_.reduce, bytes_of(item),
                                kCombining << 62 | place_in(port.pass, port.at));
    const auto begin = std::max({end, lane.work, rank.combined});
    end = worked(begin, cost);
    rank.combined = end;
    rank.computing += cost.alpha + cost.beta;
    record({.rank = id,
            .op = Op::recv_reduce,
            .round = item.round,
            .bytes = bytes_of(item),
            .begin = begin.at,
            .sent = end.at,
            .end = end.at,
            .cost = cost});
  }
  lane.done = std::max(lane.done, end);
  --lane.open;
  ++port.at;
  find_next(rank, port, false);
}

}  // namespace sinew
