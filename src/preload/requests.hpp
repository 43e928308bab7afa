// Requests under way, by their handle: what was posted, when, and whether bytes will come. A fixed
// table that threads share without locks; one that finds no place in it is not followed.
#pragma once

#include <atomic>
#include <cstdint>

#include "trace/thread_log.hpp"

namespace sinew::preload {

/// What a persistent request moves each time it is started.
struct Repeated {
  trace::Key key;
};

struct Entry {
  std::atomic<std::uint64_t> handle{0};  // 0: free
  trace::Slot* slot = nullptr;           // null: a persistent request that is not started
  std::uint64_t posted = 0;              // ticks
  Repeated* repeated = nullptr;          // of a persistent request
  bool receives = false;
  std::atomic<bool> cancelled{false};
};

class Requests {
 public:
  /// Null: no place near where it belongs.
  Entry* insert(std::uint64_t handle) noexcept {
    for (std::size_t i = 0; i < kWindow; ++i) {
      Entry& entry = at(handle, i);
      std::uint64_t free = 0;
      // acquire pairs with the release in remove(): fields of the last user are no longer read
      if (entry.handle.compare_exchange_strong(free, handle, std::memory_order_acquire))
        return &entry;
    }
    missed_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  Entry* find(std::uint64_t handle) noexcept {
    for (std::size_t i = 0; i < kWindow; ++i) {
      Entry& entry = at(handle, i);
      if (entry.handle.load(std::memory_order_acquire) == handle) return &entry;
    }
    return nullptr;
  }
  void remove(Entry& entry) noexcept { entry.handle.store(0, std::memory_order_release); }
  [[nodiscard]] std::uint64_t missed() const noexcept {
    return missed_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kEntries = 1U << 16U, kWindow = 16;
  Entry& at(std::uint64_t handle, std::size_t step) noexcept {
    return entries_[((handle * 0x9E3779B97F4A7C15U >> 48U) + step) % kEntries];
  }
  Entry entries_[kEntries];
  std::atomic<std::uint64_t> missed_{0};
};

}  // namespace sinew::preload
