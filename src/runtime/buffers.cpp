// The buffers of calls: those that all ranks of a node can address, and whether any are large
// enough.
#include <fmt/format.h>

#include <utility>

#include <sinew/communicator.hpp>
#include "transport/arena.hpp"

namespace sinew {

SharedBuffer::SharedBuffer(SharedBuffer&& other) noexcept { *this = std::move(other); }
SharedBuffer& SharedBuffer::operator=(SharedBuffer&& other) noexcept {
  std::swap(arena_, other.arena_);
  std::swap(begin_, other.begin_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
SharedBuffer::~SharedBuffer() {
  if (arena_ != nullptr) arena_->free(begin_);
}

void Communicator::check_room(std::size_t elements, std::size_t needed) const {
  if (elements < needed)
    throw Error(Errc::invalid_argument,
                fmt::format("rank {}: a buffer of {} elements, but {} are needed", rank(), elements,
                            needed));
}

void Communicator::check_parts(std::span<const std::size_t> counts, std::size_t elements,
                               std::size_t own) const {
  std::size_t total = 0;
  for (const auto count : counts) total += count;
  if (counts.size() != parts())
    throw Error(Errc::invalid_argument,
                fmt::format("rank {}: {} counts for {} ranks", rank(), counts.size(), size()));
  check_room(elements, total);
  if (own > 0 && own < counts[static_cast<std::size_t>(rank())])
    throw Error(Errc::invalid_argument,
                fmt::format("rank {}: a part of {} elements, but counts say {}", rank(), own,
                            counts[static_cast<std::size_t>(rank())]));
}

}  // namespace sinew
