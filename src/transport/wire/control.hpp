// Payloads of control frames: what a rank did last, and why it gave up. Pure, like frames.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <sinew/transport.hpp>

namespace sinew::wire {

/// No control frame has a longer payload.
inline constexpr std::size_t kMostControl = 1024;
/// So many operations back two ranks can say where they parted.
inline constexpr std::size_t kHistory = 8;

struct Entered {
  OpTag tag;
  OpDescriptor descriptor;
  friend bool operator==(const Entered& a, const Entered& b) {
    return a.tag.sequence == b.tag.sequence && a.tag.fingerprint == b.tag.fingerprint &&
           a.descriptor == b.descriptor;
  }
};

/// The operations a rank entered last, in any order.
struct History {
  std::array<Entered, kHistory> entries{};
  std::size_t count = 0;
  [[nodiscard]] std::span<const Entered> get() const noexcept { return {entries.data(), count}; }
};

struct EncodedHistory {
  static constexpr std::size_t kEntryBytes = 40;
  std::array<std::byte, kHistory * kEntryBytes> bytes{};
  std::size_t size = 0;
  [[nodiscard]] std::span<const std::byte> get() const noexcept { return {bytes.data(), size}; }
};
EncodedHistory encode_history(const History& history) noexcept;
/// False when the bytes are not a history, which is then left as it was.
bool decode_history(std::span<const std::byte> payload, History& history) noexcept;

/// A text that is too long is cut.
std::vector<std::byte> encode_failure(const Failure& failure);
std::optional<Failure> decode_failure(std::span<const std::byte> payload);

}  // namespace sinew::wire
