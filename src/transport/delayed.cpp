#include "transport/delayed.hpp"

#include <algorithm>

namespace sinew {

using std::chrono::nanoseconds;

DelayedTransport::DelayedTransport(std::unique_ptr<Transport> inner, Delay delay, Now clock)
    : Decorated(std::move(inner)),
      delay_(std::move(delay)),
      now_(std::move(clock)),
      sending_(static_cast<std::size_t>(size()) * kChannels),
      receiving_(sending_.size()) {
  if (delay_.links) return;
  int last = 0;
  for (int rank = 0; rank < size(); ++rank) last = std::max(last, node(rank));
  delay_.links = std::make_shared<LinkTimes>(last + 1);
}

Capabilities DelayedTransport::capabilities() const noexcept {
  const auto can = inner().capabilities();
  return {.board = shares_memory() && can.board, .pull = shares_memory() && can.pull};
}

int DelayedTransport::node(int rank) const noexcept {
  return delay_.node_of.empty() ? rank : delay_.node_of[static_cast<std::size_t>(rank)];
}

NodeLink DelayedTransport::between_nodes() const noexcept {
  const double rate = delay_.bytes_per_second;
  return {static_cast<double>(delay_.latency.count()), rate > 0 ? 1e9 / rate : 0};
}

DelayedTransport::Wire* DelayedTransport::begin(std::vector<Wire>& wires,
                                                const Transfer& transfer) noexcept {
  auto& wire = wires[static_cast<std::size_t>(transfer.peer) * kChannels + transfer.channel];
  if (wire.held == &transfer) return &wire;
  if (wire.held != nullptr) return nullptr;
  wire = {&transfer, transfer, false, false, 0};
  return &wire;
}

Progress DelayedTransport::send(Transfer& transfer, std::span<const std::byte> data) noexcept {
  if (is_near(transfer.peer)) return inner().send(transfer, data);
  Wire* wire = begin(sending_, transfer);
  if (wire == nullptr) return Progress::pending;
  if (wire->arrives_ns == 0) {
    const double rate = delay_.bytes_per_second;
    const nanoseconds carrying(
        rate > 0 ? static_cast<std::int64_t>(static_cast<double>(data.size()) / rate * 1e9) : 0);
    const auto through =
        delay_.links->carry(node(rank()), node(transfer.peer), nanoseconds(now_ns()), carrying);
    wire->arrives_ns = (through + delay_.latency).count();
  }
  if (!wire->stamped) {
    const auto progress = inner().send(wire->stamp, std::as_bytes(std::span(&wire->arrives_ns, 1)));
    if (progress != Progress::done) return progress;
    wire->stamped = true;
  }
  const auto progress = inner().send(transfer, data);
  if (progress == Progress::done) wire->held = nullptr;
  return progress;
}

template <class Verb>
Progress DelayedTransport::receive(Transfer& transfer, Verb verb) noexcept {
  if (is_near(transfer.peer)) return verb();
  Wire* wire = begin(receiving_, transfer);
  if (wire == nullptr) return Progress::pending;
  if (!wire->stamped) {
    const auto progress =
        inner().recv(wire->stamp, std::as_writable_bytes(std::span(&wire->arrives_ns, 1)));
    if (progress != Progress::done) return progress;
    wire->stamped = true;
  }
  // Taken out of the way of those behind it, and not told before its time.
  if (!wire->taken) {
    const auto progress = verb();
    if (progress != Progress::done) return progress;
    wire->taken = true;
  }
  if (now_ns() < wire->arrives_ns) return Progress::pending;
  wire->held = nullptr;
  return Progress::done;
}

Progress DelayedTransport::recv(Transfer& transfer, std::span<std::byte> data) noexcept {
  return receive(transfer, [&] { return inner().recv(transfer, data); });
}

Progress DelayedTransport::recv_reduce(Transfer& transfer, std::span<std::byte> data,
                                       const Reducer& reducer) noexcept {
  return receive(transfer, [&] { return inner().recv_reduce(transfer, data, reducer); });
}

// Nobody rings when a message has been on its way long enough, so do not sleep past that.
Progress DelayedTransport::park(bool moved, Deadline deadline) noexcept {
  for (const auto& wire : receiving_)
    if (wire.held != nullptr && wire.taken)
      deadline = std::min(deadline, Deadline(nanoseconds(wire.arrives_ns)));
  return inner().park(moved, deadline);
}

// Not as long as something of its is on the way.
bool DelayedTransport::has_left(int peer) const noexcept {
  const auto* wires = &receiving_[static_cast<std::size_t>(peer) * kChannels];
  return inner().has_left(peer) && std::none_of(wires, wires + kChannels, [](const Wire& wire) {
           return wire.held != nullptr && wire.stamped;
         });
}

std::unique_ptr<Transport> DelayedTransport::subset(std::span<const int> members,
                                                    std::string_view label, Deadline deadline) {
  auto part = delay_;
  part.node_of.clear();
  for (const int member : members)
    if (shares_memory()) part.node_of.push_back(node(member));
  if (!shares_memory()) part.links = nullptr;  // its ranks are other nodes than ours
  return std::make_unique<DelayedTransport>(inner().subset(members, label, deadline),
                                            std::move(part), now_);
}

}  // namespace sinew
