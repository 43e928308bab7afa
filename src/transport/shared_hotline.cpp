#include "transport/shared_hotline.hpp"

#include <fmt/format.h>

#include <cstring>
#include <thread>

#include "transport/shared_transport.hpp"

namespace sinew {

SharedHotline::SharedHotline(SharedTransport& transport, Segment& segment, const Subset& subset)
    : transport_(transport),
      segment_(segment),
      subset_(subset),
      sent_(static_cast<std::size_t>(segment.ranks())),
      heard_(sent_.size()) {}

std::size_t SharedHotline::longest() const noexcept { return segment_.options().lane_slot_bytes; }

bool SharedHotline::tell(int peer, std::span<const std::byte> message) noexcept {
  auto& lane = segment_.lane(transport_.rank(), peer, kHotlineLane);
  auto& sent = sent_[static_cast<std::size_t>(peer)];
  // acquire pairs with the release in hear(): the slot has been read
  if (sent - lane.freed.load(std::memory_order_acquire) >= kLaneDepth) return false;
  auto& slot = segment_.lane_slot(lane, sent);
  slot.length = static_cast<std::uint32_t>(message.size());
  std::memcpy(slot.payload(), message.data(), message.size());
  // release pairs with the acquire in hear(): payload before stamp
  slot.stamp.store(++sent, std::memory_order_release);
  return true;
}

std::size_t SharedHotline::hear(int peer, std::span<std::byte> message) noexcept {
  auto& lane = segment_.lane(peer, transport_.rank(), kHotlineLane);
  auto& heard = heard_[static_cast<std::size_t>(peer)];
  auto& slot = segment_.lane_slot(lane, heard);
  // acquire pairs with the release in tell()
  if (slot.stamp.load(std::memory_order_acquire) != heard + 1) return 0;
  const auto bytes = std::min<std::size_t>(slot.length, message.size());
  std::memcpy(message.data(), slot.payload(), bytes);
  // release pairs with the acquire in tell(): read before freed
  lane.freed.store(++heard, std::memory_order_release);
  return bytes;
}

bool SharedHotline::is_gone(int peer) noexcept { return transport_.is_gone(peer); }
std::string SharedHotline::last_seen(int peer) const { return transport_.last_seen(peer); }

void SharedHotline::conclude(std::uint64_t ballot) noexcept {
  std::uint64_t none = 0;
  segment_.header().concluded.compare_exchange_strong(none, ballot, std::memory_order_acq_rel);
}

std::uint64_t SharedHotline::concluded() noexcept {
  return segment_.header().concluded.load(std::memory_order_acquire);
}

void SharedHotline::rest() noexcept { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

std::unique_ptr<Transport> SharedHotline::regroup(const Regroup& whom, Deadline deadline,
                                                  const Check& check) {
  return subset_(whom.members, fmt::format("epoch {}, {}", whom.epoch, whom.label), deadline,
                 check);
}

}  // namespace sinew
