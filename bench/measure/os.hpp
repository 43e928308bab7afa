// The few things asked of the operating system: time, cores, descriptors, futexes.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <utility>

namespace sinew::bench {

/// CLOCK_MONOTONIC: comparable between the processes of one host.
std::uint64_t now_ns() noexcept;
/// Cores this process may use.
int allowed_cores() noexcept;
void pause_briefly() noexcept;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// An anonymous file that ends with its last descriptor. Throws std::system_error.
Fd make_memfd(const char* name);

/// A handle that never comes to mean another process. Invalid if there is no such process.
Fd open_pidfd(pid_t pid) noexcept;
bool has_ended(const Fd& pidfd) noexcept;
void send_signal(const Fd& pidfd, int signal) noexcept;

/// Sleeps while word == value, until woken or the time is over; spurious returns are allowed.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                std::uint64_t timeout_ns) noexcept;
void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept;

}  // namespace sinew::bench
