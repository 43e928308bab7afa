#include "transport/faulty.hpp"

namespace sinew {

FaultyTransport::FaultyTransport(std::unique_ptr<Transport> inner, Faults faults)
    : DecoratedMessages(std::move(inner)),
      faults_(std::move(faults)),
      random_(faults_.seed + static_cast<std::uint64_t>(rank())),
      stalled_(2 * static_cast<std::size_t>(size()) * kChannels) {}

template <class Verb>
Progress FaultyTransport::attempt(const Transfer& transfer, bool sends, Verb verb) noexcept {
  const auto line = static_cast<std::size_t>(sends ? transfer.peer : size() + transfer.peer);
  auto& stalled = stalled_[line * kChannels + transfer.channel];
  if (stalled != nullptr && stalled != &transfer) return Progress::pending;
  stalled = nullptr;
  if (std::uniform_real_distribution<>(0, 1)(random_) < faults_.stall_chance) {
    stalled = &transfer;
    any_stalled_ = true;
    return Progress::pending;
  }
  // The fault strikes before the transfer is attempted, so that nothing arrives by way of it.
  if (faults_.fail_at != 0 && completed_ + 1 == faults_.fail_at) {
    auto failure = faults_.failure;
    if (failure.peer < 0) failure.peer = transfer.peer;
    poison(failure);
    return Progress::failed;
  }
  const auto progress = verb();
  if (progress == Progress::done) ++completed_;
  return progress;
}

Progress FaultyTransport::send(Transfer& transfer, std::span<const std::byte> data) noexcept {
  return attempt(transfer, true, [&] { return inner().send(transfer, data); });
}

Progress FaultyTransport::recv(Transfer& transfer, std::span<std::byte> data) noexcept {
  return attempt(transfer, false, [&] { return inner().recv(transfer, data); });
}

Progress FaultyTransport::recv_reduce(Transfer& transfer, std::span<std::byte> data,
                                      const Reducer& reducer) noexcept {
  return attempt(transfer, false, [&] { return inner().recv_reduce(transfer, data, reducer); });
}

// A stalled transfer can go on at once and nobody would ring for it, so there is no sleep then.
Progress FaultyTransport::park(bool moved, Deadline deadline) noexcept {
  return inner().park(moved, std::exchange(any_stalled_, false) ? Deadline{} : deadline);
}

// Not as long as a transfer with it is stalled: it may have all it needs.
bool FaultyTransport::has_left(int peer) const noexcept {
  for (const int line : {peer, size() + peer})
    for (std::size_t channel = 0; channel < kChannels; ++channel)
      if (stalled_[static_cast<std::size_t>(line) * kChannels + channel] != nullptr) return false;
  return inner().has_left(peer);
}

std::unique_ptr<Transport> FaultyTransport::subset(std::span<const int> members,
                                                   std::string_view label, Deadline deadline) {
  return std::make_unique<FaultyTransport>(inner().subset(members, label, deadline), faults_);
}

}  // namespace sinew
