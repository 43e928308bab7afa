#include "transport/board.hpp"

#include <sys/uio.h>
#include <unistd.h>

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
    if (moved <= 0) return false;
    dst += moved;
    offset += static_cast<std::uint64_t>(moved);
    bytes -= static_cast<std::uint64_t>(moved);
  }
  return true;
}

}  // namespace sinew
