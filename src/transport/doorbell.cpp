#include "transport/doorbell.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace sinew {
namespace {

using std::chrono::nanoseconds;
// Without membarrier a ring can be missed; then nobody sleeps longer than this.
constexpr nanoseconds kShortSleep = std::chrono::microseconds(500);

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

std::uint32_t* futex_word(std::atomic<std::uint32_t>& word) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return reinterpret_cast<std::uint32_t*>(&word);
}

}  // namespace

Doorbell::Doorbell(const Segment& segment, int rank)
    : segment_(segment),
      sleepers_(segment.header().sleepers),
      rank_(rank),
      asymmetric_(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)) {}

void Doorbell::arm() noexcept {
  auto& line = segment_.bell(rank_);
  seen_ = line.bell.load(std::memory_order_relaxed);
  line.asleep.store(1, std::memory_order_seq_cst);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  // Pairs with ring(): after this, every rank either sees us asleep or has made its store visible.
  if (asymmetric_) asymmetric_ = membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  armed_ = true;
}

void Doorbell::disarm() noexcept {
  if (!armed_) return;
  segment_.bell(rank_).asleep.store(0, std::memory_order_relaxed);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  armed_ = false;
}

void Doorbell::sleep(nanoseconds most) noexcept {
  auto& line = segment_.bell(rank_);
  if (!asymmetric_) most = std::min(most, kShortSleep);
  const timespec limit{most.count() / 1'000'000'000, most.count() % 1'000'000'000};
  syscall(SYS_futex, futex_word(line.bell), FUTEX_WAIT, seen_, &limit, nullptr, 0);
  disarm();
}

void Doorbell::wake(int rank) noexcept {
  auto& line = segment_.bell(rank);
  if (line.asleep.load(std::memory_order_relaxed) == 0) return;
  line.bell.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, futex_word(line.bell), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void Doorbell::wake_all() noexcept {
  for (int rank = 0; rank < segment_.ranks(); ++rank)
    if (rank != rank_) wake(rank);
}

}  // namespace sinew
