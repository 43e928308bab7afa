// Sleeping and waking. A rank about to sleep says so, and only then do others pay for a wake.
#pragma once

#include <chrono>

#include "transport/segment.hpp"

namespace sinew {

class Doorbell {
 public:
  Doorbell(const Segment& segment, int rank);
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;
  ~Doorbell();

  /// After a fragment that `rank` may be waiting for. The store and this load may pass each other
  /// in the processor; arm() has the barrier for both sides (membarrier), or sleeps are kept short.
  void ring(int rank) noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_relaxed) != 0) wake_if_anything(rank);
  }
  /// After this rank has posted a position: wakes those who have now all they wait for.
  void ring_posted() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_relaxed) != 0) wake_satisfied();
  }

  /// Announces sleep until `want`. The caller then looks once more at what it waits for.
  void arm(const Want& want) noexcept;
  void disarm() noexcept;
  [[nodiscard]] bool armed(const Want& want) const noexcept { return armed_ && want_ == want; }
  /// Sleeps until rung after arm(), or `most` has passed. Disarms.
  void sleep(std::chrono::nanoseconds most) noexcept;
  void wake_all() noexcept;

  /// For those who wait for other descriptors as well: from now on this rank is woken by something
  /// to read on this one, and sleeps by polling it between arm() and answer(), never by sleep().
  /// -1 where that cannot be had.
  int socket() noexcept;
  /// Takes what came, and disarms.
  void answer() noexcept;

 private:
  void wake(int rank) noexcept;
  void knock(int rank) const noexcept;
  void wake_if_anything(int rank) noexcept;
  void wake_satisfied() noexcept;
  [[nodiscard]] bool has_come(int member, std::uint32_t position) const noexcept;
  [[nodiscard]] bool is_satisfied(int rank) const noexcept;

  const Segment& segment_;
  std::atomic<std::uint32_t>& sleepers_;
  int rank_;
  int socket_ = -1;
  bool asymmetric_;  // membarrier works
  bool armed_ = false;
  Want want_;  // while armed
  std::uint32_t seen_ = 0;
};

}  // namespace sinew
