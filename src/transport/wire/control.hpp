// Payloads of control frames: what a rank did last, and why it gave up. Pure, like frames.
#pragma once

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

/// At most kHistory operations.
std::vector<std::byte> encode_history(std::span<const Entered> history);
/// Nothing when the bytes are not a history.
std::optional<std::vector<Entered>> decode_history(std::span<const std::byte> payload);

/// A text that is too long is cut.
std::vector<std::byte> encode_failure(const Failure& failure);
std::optional<Failure> decode_failure(std::span<const std::byte> payload);

}  // namespace sinew::wire
