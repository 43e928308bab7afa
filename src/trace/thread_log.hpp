// What one thread writes: a table of exact counters by key, and a record a call.
#pragma once

#include <vector>

#include "trace/writer.hpp"

namespace sinew::trace {

/// Used by one thread. After a key has been seen, add() writes a few words and takes no lock; it
/// asks for a new block once in kRecordsPerBlock records.
class ThreadLog {
 public:
  static constexpr std::size_t kMostKeys = 8192;  // past three quarters new keys are coarser

  explicit ThreadLog(Writer& writer);
  ThreadLog(const ThreadLog&) = delete;
  ThreadLog& operator=(const ThreadLog&) = delete;

  /// The counters of a key. `exact` is false when the table was too full for it: then the slot is
  /// that of a coarser key and the caller adds the bytes to more_sent and more_received.
  struct Found {
    Slot* slot;
    bool exact;
  };
  Found find(const Key& key) noexcept;

  /// One call. `sequence` decides which records are kept when not all can be: equal numbers on
  /// different ranks are kept or left out alike.
  [[gnu::always_inline]] void add(Slot& slot, std::uint64_t begin, std::uint64_t duration,
                                  std::uint64_t waiting, std::uint32_t sequence) noexcept {
    slot.count += 1;
    slot.duration += duration;
    if (duration < slot.shortest) slot.shortest = duration;
    if (duration > slot.longest) slot.longest = duration;
    slot.waiting += waiting;
    append(slot, begin, duration, waiting, sequence);
  }

  [[gnu::always_inline]] void append(const Slot& slot, std::uint64_t begin, std::uint64_t duration,
                                     std::uint64_t waiting, std::uint32_t sequence) noexcept {
    if (next_ == end_) [[unlikely]]
      return append_late(slot, begin, duration, waiting, sequence);
    write(slot, begin, duration, waiting, sequence);
  }

 private:
  [[gnu::always_inline]] void write(const Slot& slot, std::uint64_t begin, std::uint64_t duration,
                                    std::uint64_t waiting, std::uint32_t sequence) noexcept {
    Record* const record = next_++;
    Record value{begin, duration, waiting,
                 std::uint64_t{sequence} << 32U | std::uint64_t{slot.number} << 16U};
    value.tail |= check_of(value);
    record->begin = value.begin;
    record->duration = value.duration;
    if (waiting != 0) record->waiting = waiting;  // fresh blocks are zeros
    // Last, so that a record that was cut off by a crash fails its check.
    std::atomic_ref(record->tail).store(value.tail, std::memory_order_release);
  }

  Slot* lookup(const Key& key, std::size_t most) noexcept;
  Slot* create(const Key& key) noexcept;
  [[gnu::noinline]] void append_late(const Slot& slot, std::uint64_t begin, std::uint64_t duration,
                                     std::uint64_t waiting, std::uint32_t sequence) noexcept;
  bool make_room(std::uint32_t sequence) noexcept;
  bool refill() noexcept;

  Record* next_ = nullptr;
  Record* end_ = nullptr;        // where make_room() is asked
  Record* block_end_ = nullptr;  // of the current block
  std::uint32_t mask_ = 0;       // records of sequences with any of these bits are left out
  std::uint16_t thread_;
  Writer& writer_;
  std::vector<Slot*> index_;
  std::size_t keys_ = 0;
  Slot* slots_ = nullptr;  // of the current block
  std::size_t slots_used_ = kSlotsPerBlock;
  Slot homeless_{};  // when not even the first block could be had
  bool lost_ = false;
};

/// Sizes between two powers of two fall into four classes; the largest of each stands for it.
std::uint64_t size_class(std::uint64_t bytes) noexcept;

}  // namespace sinew::trace
