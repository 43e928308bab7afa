#include "transport/doorbell.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
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

/// Where a rank's socket is found by those who have mapped the segment. The name goes with the
/// socket; whoever else guesses it can wake us for nothing, and that is all.
struct SocketName {
  sockaddr_un address{};
  socklen_t length = 0;

  SocketName(const Segment& segment, int rank) noexcept {
    struct stat about {};
    fstat(segment.descriptor(), &about);
    address.sun_family = AF_UNIX;
    const auto characters =
        std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "sinew-bell-%llu-%d",
                      static_cast<unsigned long long>(about.st_ino), rank);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                    static_cast<std::size_t>(characters));
  }
  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&address);
  }
};

}  // namespace

Doorbell::Doorbell(const Segment& segment, int rank)
    : segment_(segment),
      sleepers_(segment.header().sleepers),
      rank_(rank),
      asymmetric_(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)) {}

Doorbell::~Doorbell() {
  if (socket_ >= 0) close(socket_);
}

int Doorbell::socket() noexcept {
  if (socket_ >= 0) return socket_;
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const SocketName name(segment_, rank_);
  if (socket_ >= 0 && bind(socket_, name.get(), name.length) != 0) {
    close(socket_);
    socket_ = -1;
  }
  return socket_;
}

void Doorbell::answer() noexcept {
  std::byte knocks[16];
  while (recv(socket_, knocks, sizeof knocks, MSG_DONTWAIT) > 0) {
  }
  disarm();
}

// Needs no answer: a full queue will wake as well as one more in it.
void Doorbell::knock(int rank) const noexcept {
  const SocketName name(segment_, rank);
  const int from = socket_ >= 0 ? socket_ : ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sendto(from, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, name.get(), name.length);
  if (from != socket_) close(from);
}

void Doorbell::arm(const Want& want) noexcept {
  disarm();
  auto& line = segment_.bell(rank_);
  want_ = want;
  line.want_of.store(want.of, std::memory_order_relaxed);
  line.want_member.store(want.member, std::memory_order_relaxed);
  line.want_position.store(want.position, std::memory_order_relaxed);
  seen_ = line.bell.load(std::memory_order_relaxed);
  line.asleep.store(socket_ >= 0 ? Sleep::on_socket : Sleep::on_bell, std::memory_order_seq_cst);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  // Pairs with ring(): after this, every rank either sees us asleep or has made its store visible.
  if (asymmetric_) asymmetric_ = membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  armed_ = true;
}

void Doorbell::disarm() noexcept {
  if (!armed_) return;
  segment_.bell(rank_).asleep.store(Sleep::awake, std::memory_order_relaxed);
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
  const auto how = line.asleep.load(std::memory_order_relaxed);
  if (how == Sleep::awake) return;
  if (how == Sleep::on_socket) return knock(rank);
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
    if (rank != rank_ &&
        segment_.bell(rank).asleep.load(std::memory_order_acquire) != Sleep::awake &&
        is_satisfied(rank))
      wake(rank);
}

void Doorbell::wake_all() noexcept {
  for (int rank = 0; rank < segment_.ranks(); ++rank)
    if (rank != rank_) wake(rank);
}

}  // namespace sinew
