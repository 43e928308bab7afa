#include "trace/format.hpp"

#include <cstring>

namespace sinew::trace {
namespace {

// Sixteen bits would let two changes cancel too easily where nothing else guards the bytes.
std::uint64_t mixed(const void* bytes, std::size_t size) noexcept {
  std::uint64_t check = 0x9E3779B97F4A7C15U;
  for (std::size_t at = 0; at < size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(bytes) + at, 8);
    check = (check ^ word) * 0xD1342543DE82EF95U;
    check ^= check >> 29;
  }
  return check;
}

std::uint64_t exclusive_or(const void* bytes, std::size_t size) noexcept {
  std::uint64_t all = 0;
  for (std::size_t at = 0; at < size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(bytes) + at, 8);
    all ^= word;
  }
  return all;
}

bool is_note(const NoteHeader& note, const std::byte* text, std::size_t room) noexcept {
  return note.kind >= NoteKind::info && note.kind <= NoteKind::region && note.length <= room &&
         padded(note.length) <= room && check_of(note, text) == note.check;
}

template <class Item>
std::size_t valid_items(const std::byte* payload, std::size_t most) noexcept {
  std::size_t count = 0;
  for (; count < most; ++count) {
    Item item;
    std::memcpy(&item, payload + count * sizeof item, sizeof item);
    if constexpr (sizeof item == sizeof(Slot)) {
      if (item.number == 0 || item.check != check_of(item)) break;
    } else if (item.tail == 0 || (item.tail & 0xFFFF) != check_of(item)) {
      break;
    }
  }
  return count * sizeof(Item);
}

}  // namespace

std::uint16_t check_of(const Slot& slot) noexcept {
  Slot copy = slot;
  copy.check = 0;
  return fold(exclusive_or(&copy, sizeof copy / 2));
}

std::uint16_t check_of(const NoteHeader& note, const std::byte* text) noexcept {
  NoteHeader copy = note;
  copy.check = 0;
  return fold(exclusive_or(&copy, sizeof copy) ^ exclusive_or(text, padded(note.length)));
}

std::uint64_t fixed_check(const BlockHeader& header) noexcept {
  BlockHeader copy = header;
  copy.state = BlockState::open;
  return mixed(&copy, offsetof(BlockHeader, fixed));
}

std::uint64_t fixed_check(const FileHeader& header) noexcept {
  return mixed(&header, offsetof(FileHeader, fixed));
}

std::uint64_t moment_check(const Moment& moment) noexcept { return mixed(&moment, sizeof moment); }

std::size_t used_bytes(BlockKind kind, const std::byte* payload) noexcept {
  switch (kind) {
    case BlockKind::file:
      return sizeof(FileHeader);
    case BlockKind::counters:
      return valid_items<Slot>(payload, kSlotsPerBlock);
    case BlockKind::records:
      return valid_items<Record>(payload, kRecordsPerBlock);
    case BlockKind::notes:
      break;
  }
  std::size_t at = 0;
  while (at + sizeof(NoteHeader) <= kPayloadBytes) {
    NoteHeader note;
    std::memcpy(&note, payload + at, sizeof note);
    const auto text = at + sizeof note;
    if (!is_note(note, payload + text, kPayloadBytes - text)) break;
    at = text + padded(note.length);
  }
  return at;
}

// The thread sanitizer crashes in the resolver of a function with several bodies: it runs before
// the sanitizer is there.
#if defined(__SANITIZE_THREAD__)
#define SINEW_WIDE
#else
#define SINEW_WIDE [[gnu::target_clones("avx2", "default")]]
#endif

// Four pairs of sums side by side: a process at its exit has thousands of blocks to go through.
SINEW_WIDE void checksum(const BlockHeader& header, const std::byte* payload,
                         std::uint64_t sum[2]) noexcept {
  using Four [[gnu::vector_size(32)]] = std::uint64_t;
  constexpr std::size_t kLine = sizeof(Four);
  Four a{}, b{};
  const auto take = [&](const std::byte* at) {
    Four words;
    std::memcpy(&words, at, kLine);
    a += words;
    b += a;
  };
  const std::size_t whole = header.used / kLine * kLine;
#pragma GCC unroll 8
  for (std::size_t at = 0; at < whole; at += kLine) take(payload + at);
  std::byte rest[kLine] = {};
  std::memcpy(rest, payload + whole, header.used - whole);
  take(rest);
  const std::uint64_t head = mixed(&header, offsetof(BlockHeader, sum));
  sum[0] = head ^ mixed(&a, sizeof a);
  sum[1] = head ^ mixed(&b, sizeof b);
}

namespace {

// Records are written one after the other and each ends with what is not zero, so that halving the
// block finds their end: a process at its exit has thousands of blocks to seal.
std::size_t written_records(const std::byte* payload) noexcept {
  std::size_t written = 0, zero = kRecordsPerBlock;
  while (written < zero) {
    const auto middle = (written + zero) / 2;
    std::uint64_t tail = 0;
    std::memcpy(&tail, payload + middle * sizeof(Record) + offsetof(Record, tail), sizeof tail);
    (tail != 0 ? written : zero) = tail != 0 ? middle + 1 : middle;
  }
  return written * sizeof(Record);
}

}  // namespace

void seal(std::byte* block) noexcept {
  BlockHeader header;
  std::memcpy(&header, block, sizeof header);
  header.used = header.kind == BlockKind::records ? written_records(block + sizeof header)
                                                  : used_bytes(header.kind, block + sizeof header);
  header.state = BlockState::sealed;
  checksum(header, block + sizeof header, header.sum);
  std::memcpy(block, &header, sizeof header);
}

}  // namespace sinew::trace
