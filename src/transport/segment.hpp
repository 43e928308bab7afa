// The shared mapping that local and shm ranks meet in, and where everything lies in it.
//
//   header | status of each rank | flag line of each | doorbell of each | board slots | lanes |
//   arenas
//
// Board slots are reserved at creation; lanes and arenas take memory when first touched.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sinew/transport.hpp>

namespace sinew {

inline constexpr std::size_t kLine = 64;

/// Knobs of a segment, equal on all ranks (rank 0's are used).
struct SegmentOptions {
  std::size_t slot_bytes = 0;                          // one of a rank's board slots; 0: choose
  std::uint32_t slots = 0;                             // how many it has, at least 2; 0: choose
  std::size_t lane_slot_bytes = std::size_t{1} << 15;  // payload of one fragment in a lane
  std::size_t arena_bytes = std::size_t{1} << 34;      // address space for alloc_shared, each rank
};

/// The flag line others poll: (position << 32) | fingerprint in one word, so that a reader gets
/// "how far" and "in which operation" together.
/// Tiny payloads travel in the same cache line, one for each parity.
struct alignas(2 * kLine) FlagLine {
  static constexpr std::size_t kTiny = 24;
  std::atomic<std::uint64_t> word;
  std::byte tiny[2][kTiny];
};

/// What a rank that sleeps is waiting for, so that others wake it when it is there and not before.
struct Want {
  enum class Of : std::uint32_t { nobody, anyone, everyone, one };
  Of of = Of::nobody;
  std::int32_t member = -1;    // of one: who
  std::uint32_t position = 0;  // that everyone or one must have come to
  static Want anything() noexcept { return {Of::anyone, -1, 0}; }
  friend bool operator==(const Want&, const Want&) = default;
};

/// On its bell, or on its socket together with other sockets (see Doorbell::socket()).
enum class Sleep : std::uint32_t { awake, on_bell, on_socket };

struct alignas(kLine) BellLine {
  std::atomic<std::uint32_t> bell;  // counts rings; what the owner sleeps on
  std::atomic<Sleep> asleep;        // how the owner sleeps, or is about to
  std::atomic<Want::Of> want_of;
  std::atomic<std::int32_t> want_member;
  std::atomic<std::uint32_t> want_position;
};

enum class RankState : std::uint32_t { absent, joined, left };

/// What a rank is doing, for error texts. Written by its owner only.
struct alignas(kLine) StatusLine {
  static constexpr std::uint32_t kHistory = 8;
  struct Entry {
    std::atomic<std::uint64_t> sequence_and_fingerprint;
    std::atomic<std::uint64_t> kind, count, algorithm, tag;
  };
  std::atomic<RankState> state;
  std::atomic<std::int32_t> pid;
  std::atomic<std::int32_t>
      domain;  // the memory domain it is bound to, from 1; 0: to no single one
  std::atomic<std::uint32_t> sequence;  // the operation it last entered
  std::atomic<std::uint64_t> heard_ns;  // steady clock; kept up to date while it sleeps in a wait
  std::atomic<std::uint64_t> address[2][2];  // [pass parity][input, output]: where its buffers lie
  std::atomic<std::uint64_t> worked;         // bytes it has copied and combined, but for short ones
  std::atomic<std::uint64_t> base;           // where the segment lies in its process
  std::atomic<std::uint32_t> pulls;  // 0: not known yet, 1: it can read others' memory, 2: not
  Entry history[kHistory];           // by sequence % kHistory

  /// Whether this rank is known to have entered another operation under that number.
  [[nodiscard]] bool disagrees(OpTag tag) const noexcept {
    const auto word =
        history[tag.sequence % kHistory].sequence_and_fingerprint.load(std::memory_order_relaxed);
    return word >> 32 == tag.sequence && static_cast<std::uint32_t>(word) != tag.fingerprint;
  }
};

struct PoisonRecord {
  enum class State : std::uint32_t { clean, writing, poisoned };
  std::atomic<State> state;
  std::atomic<std::uint32_t> code;
  std::atomic<std::int32_t> peer;
  std::atomic<std::uint64_t> text[32];  // 256 characters
};

struct alignas(kLine) SegmentHeader {
  std::uint32_t magic, ranks;
  SegmentOptions options;
  alignas(kLine) std::atomic<std::uint32_t> sleepers;  // how many ranks are not awake
  PoisonRecord poison;
  std::atomic<std::uint64_t>
      concluded;  // ballot by which some went on without this segment; 0: none
};

/// A lane: fragments from one rank to another on one channel, in order.
struct LaneSlot {
  static constexpr std::size_t kHeader = kLine;
  std::atomic<std::uint64_t> stamp;  // fragment number + 1 once its payload is complete
  std::uint32_t length, sequence, fingerprint;
  std::uint32_t user;  // for point-to-point messages
  std::uint64_t total;
  std::byte* payload() { return reinterpret_cast<std::byte*>(this) + kHeader; }
};
static_assert(sizeof(LaneSlot) <= LaneSlot::kHeader);

struct LaneHeader {
  alignas(kLine) std::atomic<std::uint64_t> freed;  // fragments the receiver is done with
};

inline constexpr std::uint32_t kLaneDepth = 4;
/// From each rank to each other: a lane for every channel, and one for the hotline.
inline constexpr int kLanes = kChannels + 1, kHotlineLane = kChannels;

class Segment {
 public:
  /// A new mapping for `ranks`. Throws Error{out_of_memory} when it cannot be had.
  Segment(int ranks, const SegmentOptions& options);
  /// The mapping another process made. Takes the descriptor.
  explicit Segment(int descriptor);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(header().ranks); }
  [[nodiscard]] const SegmentOptions& options() const noexcept { return header().options; }

  [[nodiscard]] SegmentHeader& header() const noexcept { return *at<SegmentHeader>(0); }
  [[nodiscard]] StatusLine& status(int rank) const noexcept {
    return at<StatusLine>(status_)[rank];
  }
  [[nodiscard]] FlagLine& flag(int rank) const noexcept { return at<FlagLine>(flags_)[rank]; }
  [[nodiscard]] BellLine& bell(int rank) const noexcept { return at<BellLine>(bells_)[rank]; }
  [[nodiscard]] std::byte* slot(int rank, std::uint32_t number) const noexcept {
    return base_ + slots_ +
           (static_cast<std::size_t>(rank) * options().slots + number) * options().slot_bytes;
  }
  [[nodiscard]] LaneHeader& lane(int from, int to, int channel) const noexcept;
  [[nodiscard]] LaneSlot& lane_slot(LaneHeader& lane, std::uint64_t number) const noexcept;
  [[nodiscard]] std::byte* arena(int rank) const noexcept {
    return base_ + arenas_ + static_cast<std::size_t>(rank) * options().arena_bytes;
  }

  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Backs a range with memory now, so that touching it later cannot fail. Throws
  /// Error{out_of_memory}.
  void reserve(std::byte* begin, std::size_t bytes);
  void release(std::byte* begin, std::size_t bytes) noexcept;

 private:
  template <class T>
  T* at(std::size_t offset) const noexcept {
    return reinterpret_cast<T*>(base_ + offset);
  }
  [[nodiscard]] std::size_t lane_bytes() const noexcept;
  void lay_out(int ranks, const SegmentOptions& options);
  bool map() noexcept;

  int descriptor_ = -1;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t lane_slot_bytes_ = 0;
  std::size_t status_ = 0, flags_ = 0, bells_ = 0, slots_ = 0, lanes_ = 0, arenas_ = 0;
};

}  // namespace sinew
