#include "transport/link_times.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

#include <sinew/error.hpp>

namespace sinew {

LinkTimes::LinkTimes(int nodes) {
  const auto count = static_cast<std::size_t>(nodes);
  void* memory = mmap(nullptr, count * sizeof(Node), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(Errc::out_of_memory, fmt::format("no memory for the links of {} nodes", nodes));
  // Zero-filled: all links are free.
  nodes_ = {static_cast<Node*>(memory), count};
}

LinkTimes::~LinkTimes() { munmap(nodes_.data(), nodes_.size_bytes()); }

// Nothing else is told by these words, so that relaxed will do.
LinkTimes::Nanoseconds LinkTimes::take(Direction& link, Nanoseconds now,
                                       Nanoseconds carrying) noexcept {
  auto free = link.free_ns.load(std::memory_order_relaxed);
  std::int64_t begin = 0;
  do {
    begin = std::max(free, now.count());
  } while (!link.free_ns.compare_exchange_weak(free, begin + carrying.count(),
                                               std::memory_order_relaxed));
  return Nanoseconds(begin);
}

LinkTimes::Nanoseconds LinkTimes::carry(int from, int to, Nanoseconds now,
                                        Nanoseconds carrying) noexcept {
  const auto leaves = take(nodes_[static_cast<std::size_t>(from)].out, now, carrying);
  const auto comes = take(nodes_[static_cast<std::size_t>(to)].in, leaves, carrying);
  return comes + carrying;
}

}  // namespace sinew
