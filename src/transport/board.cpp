#include "transport/board.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "kernel/copy.hpp"

namespace sinew {

const std::byte* Board::in_sight(int member, bool output) const noexcept {
  const auto& status = segment_.status(member);
  const auto pid = status.pid.load(std::memory_order_relaxed);
  const auto address = status.address[parity()][output ? 1 : 0].load(std::memory_order_relaxed);
  const bool in_segment = address - status.base.load(std::memory_order_relaxed) < segment_.bytes();
  return in_segment || pid == 0 || pid == getpid() ? exposed(member, output) : nullptr;
}

bool Board::pull(int member, bool output, std::uint64_t offset, std::byte* dst, std::uint64_t bytes,
                 bool streaming) noexcept {
  if (const auto* const near = in_sight(member, output)) {
    copy_bytes(dst, near + offset, bytes, streaming);
    return true;
  }
  const auto& status = segment_.status(member);
  const auto pid = status.pid.load(std::memory_order_relaxed);
  const auto address = status.address[parity()][output ? 1 : 0].load(std::memory_order_relaxed);
  while (bytes > 0) {
    const iovec local{dst, bytes};
    const iovec remote{reinterpret_cast<void*>(address + offset), bytes};
    const auto moved = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) {
      pull_error_ = moved < 0 ? errno : EFAULT;
      return false;
    }
    dst += moved;
    offset += static_cast<std::uint64_t>(moved);
    bytes -= static_cast<std::uint64_t>(moved);
  }
  return true;
}

bool Board::is_poisoned() const noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);  // what was read before was read by now
  return segment_.header().poison.state.load(std::memory_order_acquire) ==
         PoisonRecord::State::poisoned;
}

bool Board::is_one_process() const noexcept {
  const auto pid = segment_.status(segment_.ranks() - 1).pid.load(std::memory_order_relaxed);
  return segment_.ranks() > 1 && !stands_for_processes_ &&
         (pid == 0 || pid == segment_.status(0).pid.load(std::memory_order_relaxed));
}

}  // namespace sinew
