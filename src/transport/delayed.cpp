#include "transport/delayed.hpp"

#include <algorithm>

namespace sinew {

DelayedTransport::DelayedTransport(std::unique_ptr<Transport> inner, Delay delay, Now now)
    : DecoratedMessages(std::move(inner)),
      delay_(delay),
      now_(std::move(now)),
      wires_(static_cast<std::size_t>(size()) * kChannels) {}

Progress DelayedTransport::send(Transfer& transfer, std::span<const std::byte> data) noexcept {
  auto& wire = wires_[static_cast<std::size_t>(transfer.peer) * kChannels + transfer.channel];
  if (wire.held != nullptr && wire.held != &transfer) return Progress::pending;
  const auto now = now_();
  if (wire.held == nullptr) {
    const std::chrono::duration<double> carrying(
        delay_.bytes_per_second > 0 ? static_cast<double>(data.size()) / delay_.bytes_per_second
                                    : 0);
    wire.held = &transfer;
    wire.free = std::max(wire.free, now) + std::chrono::duration_cast<Clock::duration>(carrying);
    wire.arrives = wire.free + delay_.latency;
    wire.waits = true;
  }
  if (now < wire.arrives) return Progress::pending;
  wire.waits = false;
  const auto progress = inner().send(transfer, data);
  if (progress == Progress::done) wire.held = nullptr;
  return progress;
}

// Nobody rings when a message has been held long enough, so do not sleep past that.
Progress DelayedTransport::park(bool moved, Deadline deadline) noexcept {
  for (const auto& wire : wires_)
    if (wire.waits) deadline = std::min(deadline, wire.arrives);
  return inner().park(moved, deadline);
}

std::unique_ptr<Transport> DelayedTransport::subset(std::span<const int> members,
                                                    std::string_view label, Deadline deadline) {
  return std::make_unique<DelayedTransport>(inner().subset(members, label, deadline), delay_, now_);
}

}  // namespace sinew
