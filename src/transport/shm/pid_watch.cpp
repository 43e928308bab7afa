#include "transport/shm/pid_watch.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <sinew/error.hpp>

namespace sinew {

PidWatch::PidWatch(std::span<const int> pids, int rank) {
  for (std::size_t peer = 0; peer < pids.size(); ++peer) {
    if (static_cast<int>(peer) == rank) continue;
    const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, pids[peer], 0));
    if (descriptor < 0) {
      const int error = errno;
      for (const auto& entry : entries_) close(entry.fd);
      // The process was there a moment ago, when it joined.
      throw Error(error == ESRCH ? Errc::peer_lost : Errc::system,
                  fmt::format("rank {} (pid {}) cannot be watched: {}", peer, pids[peer],
                              std::strerror(error)));
    }
    entries_.push_back({descriptor, POLLIN, 0});
    ranks_.push_back(static_cast<int>(peer));
  }
}

PidWatch::~PidWatch() {
  for (const auto& entry : entries_)
    if (entry.fd >= 0) close(entry.fd);
}

bool PidWatch::is_anyone_dead() noexcept { return poll(entries_.data(), entries_.size(), 0) > 0; }

int PidWatch::find_dead() noexcept {
  if (!is_anyone_dead()) return -1;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if ((entries_[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      // A dead rank is reported once; whoever asks decides what it means.
      close(std::exchange(entries_[i].fd, -1));
      return ranks_[i];
    }
  return -1;
}

}  // namespace sinew
