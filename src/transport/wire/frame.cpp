#include "transport/wire/frame.hpp"

#include <xxhash.h>

#include "kernel/checksum.hpp"
#include "transport/wire/bytes.hpp"

namespace sinew::wire {
namespace {

constexpr std::uint32_t kMagic = 0x31574E53;  // "SNW1" as little-endian bytes
constexpr std::uint16_t kSummed = 1;
constexpr std::size_t kSumAt = kHeaderBytes - 4;

}  // namespace

std::uint32_t header_sum(std::span<const std::byte, kHeaderBytes> header) noexcept {
  return static_cast<std::uint32_t>(XXH3_64bits(header.data(), kSumAt));
}

std::string_view name(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::none:
      return "fine";
    case Refusal::magic:
      return "not a frame";
    case Refusal::version:
      return "a frame of another version";
    case Refusal::header_sum:
      return "a damaged header";
    case Refusal::kind:
      return "a frame of an unknown kind";
    case Refusal::flags:
      return "a frame with unknown flags";
    case Refusal::length:
      return "a frame longer than frames may be";
    case Refusal::beyond_total:
      return "a piece that sticks out of its message";
  }
  return "unknown";
}

Header encode(const Frame& frame) noexcept {
  Header header;
  std::byte* at = header.data();
  put(at, kMagic);
  put(at + 4, kVersion);
  put(at + 5, static_cast<std::uint8_t>(frame.kind));
  put(at + 6, frame.summed ? kSummed : std::uint16_t{0});
  put(at + 8, frame.epoch);
  put(at + 12, frame.source);
  put(at + 16, frame.channel);
  put(at + 18, std::uint16_t{0});
  put(at + 20, frame.sequence);
  put(at + 24, frame.fingerprint);
  put(at + 28, frame.pass);
  put(at + 32, frame.offset);
  put(at + 40, frame.total);
  put(at + 48, frame.payload_sum);
  put(at + 56, frame.length);
  put(at + kSumAt, header_sum(header));
  return header;
}

Refusal decode(std::span<const std::byte, kHeaderBytes> header, Frame& frame) noexcept {
  const std::byte* at = header.data();
  if (get<std::uint32_t>(at) != kMagic) return Refusal::magic;
  if (get<std::uint8_t>(at + 4) != kVersion) return Refusal::version;
  if (get<std::uint32_t>(at + kSumAt) != header_sum(header)) return Refusal::header_sum;
  if (get<std::uint8_t>(at + 5) >= kKinds) return Refusal::kind;
  const auto flags = get<std::uint16_t>(at + 6);
  if ((flags & ~kSummed) != 0 || get<std::uint16_t>(at + 18) != 0) return Refusal::flags;
  Frame read;
  read.kind = static_cast<Kind>(at[5]);
  read.summed = (flags & kSummed) != 0;
  read.epoch = get<std::uint32_t>(at + 8);
  read.source = get<std::uint32_t>(at + 12);
  read.channel = get<std::uint16_t>(at + 16);
  read.sequence = get<std::uint32_t>(at + 20);
  read.fingerprint = get<std::uint32_t>(at + 24);
  read.pass = get<std::uint32_t>(at + 28);
  read.offset = get<std::uint64_t>(at + 32);
  read.total = get<std::uint64_t>(at + 40);
  read.payload_sum = get<std::uint64_t>(at + 48);
  read.length = get<std::uint32_t>(at + 56);
  if (read.length > kMostPayload) return Refusal::length;
  const bool is_piece = read.kind == Kind::data;
  if (is_piece && (read.offset > read.total || read.length > read.total - read.offset))
    return Refusal::beyond_total;
  frame = read;
  return Refusal::none;
}

std::uint64_t sum_of(std::span<const std::byte> payload) noexcept { return checksum(payload); }

}  // namespace sinew::wire
