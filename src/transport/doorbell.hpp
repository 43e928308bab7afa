// Sleeping and waking. A rank about to sleep says so, and only then do others pay for a wake.
#pragma once

#include <chrono>

#include "transport/segment.hpp"

namespace sinew {

class Doorbell {
 public:
  Doorbell(const Segment& segment, int rank);

  /// After a store that `rank` may be waiting for. The store and this load may pass each other in
  /// the processor; arm() has the barrier for both sides (membarrier), or sleeps are kept short.
  void ring(int rank) noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_relaxed) != 0) wake(rank);
  }
  void ring_all() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_relaxed) != 0) wake_all();
  }

  /// Announces sleep. The caller then looks once more at what it waits for.
  void arm() noexcept;
  void disarm() noexcept;
  [[nodiscard]] bool armed() const noexcept { return armed_; }
  /// Sleeps until rung after arm(), or `most` has passed. Disarms.
  void sleep(std::chrono::nanoseconds most) noexcept;
  void wake_all() noexcept;

 private:
  void wake(int rank) noexcept;

  const Segment& segment_;
  std::atomic<std::uint32_t>& sleepers_;
  int rank_;
  bool asymmetric_;  // membarrier works
  bool armed_ = false;
  std::uint32_t seen_ = 0;
};

}  // namespace sinew
