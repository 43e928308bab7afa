#include "measure/os.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>
#include <system_error>

namespace sinew::bench {

std::uint64_t now_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

int allowed_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Fd make_memfd(const char* name) {
  Fd fd{::memfd_create(name, MFD_CLOEXEC)};
  if (!fd.valid()) throw std::system_error(errno, std::generic_category(), "memfd_create");
  return fd;
}

Fd open_pidfd(pid_t pid) noexcept {
  return Fd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
}

bool has_ended(const Fd& pidfd) noexcept {
  if (!pidfd.valid()) return true;
  pollfd ask{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ask, 1, 0) == 1;
}

void send_signal(const Fd& pidfd, int signal) noexcept {
  if (pidfd.valid()) ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

// Not FUTEX_PRIVATE: the words lie in memory shared between processes.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                std::uint64_t timeout_ns) noexcept {
  const timespec timeout{.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000U),
                         .tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000U)};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace sinew::bench
