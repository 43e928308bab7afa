// The trace file, byte by byte. docs/format-trace.md is the same in words.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinew::trace {

inline constexpr std::size_t kBlockBytes = 16384;
inline constexpr std::uint32_t kVersion = 1;
inline constexpr char kFileMagic[8] = {'S', 'I', 'N', 'E', 'W', 'T', 'R', 'C'};
inline constexpr char kBlockMagic[4] = {'S', 'N', 'W', 'B'};

enum class BlockKind : std::uint8_t { file = 1, counters = 2, records = 3, notes = 4 };
enum class BlockState : std::uint8_t { open = 0, sealed = 0xA5 };

struct BlockHeader {
  char magic[4];
  BlockKind kind;
  BlockState state;
  std::uint16_t thread;  // number of the thread in its process
  std::uint32_t index;   // of the block in the file
  std::uint32_t first;   // counters: number of the first slot
  std::uint64_t stride;  // records: one of so many was kept
  std::uint64_t fixed;   // check of magic, kind, thread, index, first, stride
  std::uint64_t used;    // sealed: bytes after this header that count
  std::uint64_t sum[2];  // sealed: over what comes before, and over the used bytes
  std::uint64_t zero;
};
static_assert(sizeof(BlockHeader) == 64);
inline constexpr std::size_t kPayloadBytes = kBlockBytes - sizeof(BlockHeader);

/// A moment on the clock of the records and on CLOCK_MONOTONIC.
struct Moment {
  std::uint64_t ticks;
  std::uint64_t ns;
};

/// Comes after the header of the first block.
struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t block_bytes;
  std::uint64_t process;
  Moment opened;
  std::uint64_t opened_real_ns;  // CLOCK_REALTIME then
  std::uint64_t ns_per_tick;     // 32.32 fixed point, as known then
  std::uint64_t budget_bytes;
  std::uint8_t boot[16];  // of the host: equal boots share CLOCK_MONOTONIC
  std::uint64_t fixed;    // check of all before
  Moment latest;          // what gives the exact rate of the clock
  std::uint64_t latest_check;
  std::uint64_t closed;        // 1: the process ended in order
  std::uint64_t lost_records;  // for want of room
  std::uint64_t lost_threads;  // whose counters found no room
  std::uint64_t blocks;        // sealed: of the whole file
};
static_assert(sizeof(FileHeader) == 144);

/// What a call was. Calls of one thread with equal keys share one slot.
struct Key {
  std::uint8_t kind = 0;
  std::uint8_t dtype = 0;
  std::uint16_t operation = 0;
  std::uint32_t communicator = 0;
  std::uint64_t bytes = 0;  // as the caller gave them
  std::uint64_t sent = 0;   // by one such call
  std::uint64_t received = 0;
  std::int32_t peer = -1;
  std::uint32_t round = 0;
  std::uint64_t tag = 0;
  std::uint64_t algorithm = 0;
  std::uint8_t channel = 0;
  std::uint8_t label = 0;
  std::uint16_t region = 0;
  friend bool operator==(const Key&, const Key&) = default;
};

/// The routine that readers give the calls of slot 1, whose own keys found no room.
inline constexpr std::uint16_t kOtherCalls = 0xFFFF;

/// A key with its counters. The first half never changes; the second is one cache line.
struct alignas(64) Slot {
  std::uint8_t kind, dtype;
  std::uint16_t operation;
  std::uint32_t communicator;
  std::uint64_t bytes, sent, received;
  std::int32_t peer;
  std::uint32_t round;
  std::uint64_t tag, algorithm;
  std::uint8_t channel, label;
  std::uint16_t region;
  std::uint16_t number;  // among the slots of its thread, from 1
  std::uint16_t check;   // of the first half

  std::uint64_t count;     // calls
  std::uint64_t duration;  // ticks, of all calls
  std::uint64_t shortest, longest;
  std::uint64_t waiting;        // ticks in which nothing could be done
  std::uint64_t in_flight;      // ticks from post to completion
  std::uint64_t more_sent;      // bytes besides count * sent
  std::uint64_t more_received;  // bytes besides count * received
};
static_assert(sizeof(Slot) == 128);
inline constexpr std::size_t kSlotsPerBlock = kPayloadBytes / sizeof(Slot);

struct Record {
  std::uint64_t begin;     // ticks
  std::uint64_t duration;  // ticks
  std::uint64_t waiting;   // ticks
  std::uint64_t tail;      // check (16 bits), slot (16 bits), sequence (32 bits), from the lowest
};
static_assert(sizeof(Record) == 32);
inline constexpr std::size_t kRecordsPerBlock = kPayloadBytes / sizeof(Record);

enum class NoteKind : std::uint8_t { info = 1, routine, communicator, algorithm, label, region };

/// Comes before the text, which is filled with zeros to a multiple of 8 bytes.
struct NoteHeader {
  NoteKind kind;
  std::uint8_t zero;
  std::uint16_t check;  // of the rest and the text
  std::uint32_t length;
  std::uint64_t id;
};
static_assert(sizeof(NoteHeader) == 16);
inline constexpr std::size_t kLongestNote = kPayloadBytes - sizeof(NoteHeader);

/// Sixteen bits that every bit of x changes. 0 for 0: zeros are told apart by other fields.
constexpr std::uint16_t fold(std::uint64_t x) noexcept {
  return static_cast<std::uint16_t>(x * 0x9E3779B97F4A7C15U >> 48U);
}

inline std::uint16_t check_of(const Record& record) noexcept {
  const auto tail = record.tail & ~std::uint64_t{0xFFFF};
  return fold(record.begin ^ record.duration ^ record.waiting ^ tail);
}

std::uint16_t check_of(const Slot& slot) noexcept;
std::uint16_t check_of(const NoteHeader& note, const std::byte* text) noexcept;
std::uint64_t fixed_check(const BlockHeader& header) noexcept;
std::uint64_t fixed_check(const FileHeader& header) noexcept;
std::uint64_t moment_check(const Moment& moment) noexcept;

/// Bytes of the payload that hold something, found by checks alone.
std::size_t used_bytes(BlockKind kind, const std::byte* payload) noexcept;
/// Computes what header->sum must be; header->used must be set.
void checksum(const BlockHeader& header, const std::byte* payload, std::uint64_t sum[2]) noexcept;
void seal(std::byte* block) noexcept;

constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) / 8 * 8; }

}  // namespace sinew::trace
