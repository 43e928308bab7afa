// What travels over a socket: frames, each a header of 64 bytes and at most 256 KiB of payload.
//
//   offset  bytes  field                        offset  bytes  field
//        0      4  magic "SNW1"                     28      4  pass (slice of a sliced schedule)
//        4      1  version                          32      8  offset of the payload in the message
//        5      1  kind                             40      8  bytes of the whole message
//        6      2  flags (1: payload is summed)     48      8  sum of the payload, or 0
//        8      4  epoch                            56      4  bytes of payload that follow
//       12      4  rank of the sender               60      4  low half of xxh3-64 of the other 60
//       16      2  channel
//       18      2  zero
//       20      4  sequence of the operation
//       24      4  fingerprint of the operation
//
// Integers are little-endian. Encoding and decoding are pure: they look at nothing else, and a
// frame that decodes has a length that was checked. Nothing is ever allocated from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sinew::wire {

inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 64;
inline constexpr std::uint32_t kMostPayload = std::uint32_t{256} << 10;

enum class Kind : std::uint8_t {
  data,       // a piece of a transfer
  heartbeat,  // still here, waiting in operation `sequence`
  history,    // the operations entered last, as payload; `total` 1: and yours, please
  poison,     // the communicator is of no use any more; why, as payload
  goodbye,    // leaves after operation `sequence`; the history, as payload
  notice,     // of who decides who goes on after a failure; as payload
  concluded,  // that is decided, by ballot `total`; whoever did not take part is given up
  word,       // of a rank that is about to connect anew: a key, a zero byte, a value
};
inline constexpr std::uint8_t kKinds = 8;

struct Frame {
  Kind kind = Kind::data;
  bool summed = false;  // `payload_sum` is one
  std::uint16_t channel = 0;
  std::uint32_t epoch = 0;
  std::uint32_t source = 0;
  std::uint32_t sequence = 0;
  std::uint32_t fingerprint = 0;
  std::uint32_t pass = 0;
  std::uint32_t length = 0;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
  std::uint64_t payload_sum = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
};

using Header = std::array<std::byte, kHeaderBytes>;

/// Why bytes are not a frame.
enum class Refusal : std::uint8_t {
  none,
  magic,        // no frame of ours begins like this
  version,      // of a Sinew that speaks another version
  header_sum,   // damaged
  kind,         // none that this version knows
  flags,        // the same
  length,       // more payload than a frame may have
  beyond_total  // a piece that sticks out of its message
};
std::string_view name(Refusal refusal) noexcept;

Header encode(const Frame& frame) noexcept;
/// Fills `frame` only when it returns Refusal::none.
Refusal decode(std::span<const std::byte, kHeaderBytes> header, Frame& frame) noexcept;

/// What the last four bytes of a header are to be.
std::uint32_t header_sum(std::span<const std::byte, kHeaderBytes> header) noexcept;
/// The checksum a frame carries for its payload (kernel/checksum.hpp).
std::uint64_t sum_of(std::span<const std::byte> payload) noexcept;

}  // namespace sinew::wire
