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

void Doorbell::arm(const Want& want) noexcept {
  disarm();
  auto& line = segment_.bell(rank_);
  want_ = want;
  line.want_of.store(want.of, std::memory_order_relaxed);
  line.want_member.store(want.member, std::memory_order_relaxed);
  line.want_position.store(want.position, std::memory_order_relaxed);
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

void Doorbell::wake_if_anything(int rank) noexcept {
  if (segment_.bell(rank).want_of.load(std::memory_order_relaxed) == Want::Of::anyone) wake(rank);
}

bool Doorbell::has_come(int member, std::uint32_t position) const noexcept {
  const auto word = segment_.flag(member).word.load(std::memory_order_acquire);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(word >> 32) - position) >= 0;
}

bool Doorbell::is_satisfied(int rank) const noexcept {
  const auto& line = segment_.bell(rank);
  const auto position = line.want_position.load(std::memory_order_relaxed);
  switch (line.want_of.load(std::memory_order_relaxed)) {
    case Want::Of::one:
      return has_come(line.want_member.load(std::memory_order_relaxed), position);
    case Want::Of::everyone:
      for (int member = 0; member < segment_.ranks(); ++member)
        if (member != rank && !has_come(member, position)) return false;
      return true;
    default:
      return true;
  }
}

// Only the last of those somebody waits for wakes him. Two that come at the same time must not both
// take the other for the last: they pass here one after the other, and the second sees the first's
// post.
void Doorbell::wake_satisfied() noexcept {
  sleepers_.fetch_add(0, std::memory_order_acq_rel);
  for (int rank = 0; rank < segment_.ranks(); ++rank)
    if (rank != rank_ && segment_.bell(rank).asleep.load(std::memory_order_acquire) != 0 &&
        is_satisfied(rank))
      wake(rank);
}

void Doorbell::wake_all() noexcept {
  for (int rank = 0; rank < segment_.ranks(); ++rank)
    if (rank != rank_) wake(rank);
}

}  // namespace sinew
