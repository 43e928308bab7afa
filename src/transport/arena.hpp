// Memory that all ranks of a node can address: where alloc_shared() buffers live.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "transport/segment.hpp"

namespace sinew {

/// One rank's part of the segment's arenas. First fit over a list of free ranges; used at set-up
/// time, not in the hot path.
class Arena {
 public:
  Arena(std::shared_ptr<Segment> segment, int rank);
  /// On a cache line, and backed by memory. Throws Error{out_of_memory}.
  std::byte* allocate(std::size_t bytes);
  void free(std::byte* begin) noexcept;

 private:
  std::shared_ptr<Segment> segment_;
  std::byte* base_;
  std::size_t
      skew_;  // so that equal places in ranks' buffers do not compete for the same cache set
  std::map<std::size_t, std::size_t> free_;  // offset -> bytes
  std::map<std::size_t, std::size_t> used_;
};

}  // namespace sinew
