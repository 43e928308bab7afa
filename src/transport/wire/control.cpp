#include "transport/wire/control.hpp"

#include <algorithm>
#include <cstring>

#include "transport/wire/bytes.hpp"

namespace sinew::wire {
namespace {

// sequence 4 | fingerprint 4 | collective 1 | dtype 1 | op 1 | zero 1 | root 4 | count 8 |
// algorithm 8 | tag 8
constexpr std::size_t kEntryBytes = EncodedHistory::kEntryBytes;
// code 1 | zero 3 | peer 4 | text
constexpr std::size_t kFailureHead = 8;
constexpr std::size_t kMostText = 512;

template <class Enum, class List>
bool is_one_of(const List& list, std::uint8_t number) {
  return std::any_of(list.begin(), list.end(),
                     [&](Enum one) { return static_cast<std::uint8_t>(one) == number; });
}

}  // namespace

EncodedHistory encode_history(const History& history) noexcept {
  EncodedHistory encoded;
  for (const auto& [tag, descriptor] : history.get()) {
    std::byte* at = encoded.bytes.data() + encoded.size;
    put(at, tag.sequence);
    put(at + 4, tag.fingerprint);
    put(at + 8, static_cast<std::uint8_t>(descriptor.collective));
    put(at + 9, static_cast<std::uint8_t>(descriptor.dtype));
    put(at + 10, static_cast<std::uint8_t>(descriptor.op));
    put(at + 12, static_cast<std::uint32_t>(descriptor.root));
    put(at + 16, descriptor.count);
    put(at + 24, descriptor.algorithm);
    put(at + 32, descriptor.tag);
    encoded.size += kEntryBytes;
  }
  return encoded;
}

bool decode_history(std::span<const std::byte> payload, History& history) noexcept {
  if (payload.size() % kEntryBytes != 0 || payload.size() > kHistory * kEntryBytes) return false;
  History read;
  for (; !payload.empty(); payload = payload.subspan(kEntryBytes)) {
    const std::byte* at = payload.data();
    const auto collective = get<std::uint8_t>(at + 8), dtype = get<std::uint8_t>(at + 9),
               op = get<std::uint8_t>(at + 10);
    if (!is_one_of<Collective>(kCollectives, collective) || !is_one_of<DType>(kDTypes, dtype) ||
        !is_one_of<ReduceOp>(kReduceOps, op))
      return false;
    read.entries[read.count++] = {
        {get<std::uint32_t>(at), get<std::uint32_t>(at + 4)},
        {static_cast<Collective>(collective), static_cast<DType>(dtype), static_cast<ReduceOp>(op),
         static_cast<std::int32_t>(get<std::uint32_t>(at + 12)), get<std::uint64_t>(at + 16),
         get<std::uint64_t>(at + 24), get<std::uint64_t>(at + 32)}};
  }
  history = read;
  return true;
}

std::vector<std::byte> encode_failure(const Failure& failure) {
  const auto text = std::min(failure.why.size(), kMostText);
  std::vector<std::byte> bytes(kFailureHead + text);
  put(bytes.data(), static_cast<std::uint8_t>(failure.code));
  put(bytes.data() + 4, static_cast<std::uint32_t>(failure.peer));
  std::memcpy(bytes.data() + kFailureHead, failure.why.data(), text);
  return bytes;
}

std::optional<Failure> decode_failure(std::span<const std::byte> payload) {
  if (payload.size() < kFailureHead || payload.size() > kFailureHead + kMostText) return {};
  const auto code = get<std::uint8_t>(payload.data());
  if (code > static_cast<std::uint8_t>(Errc::minority)) return {};
  const auto* text = reinterpret_cast<const char*>(payload.data()) + kFailureHead;
  return Failure{static_cast<Errc>(code),
                 static_cast<std::int32_t>(get<std::uint32_t>(payload.data() + 4)),
                 std::string(text, payload.size() - kFailureHead)};
}

}  // namespace sinew::wire
