// Ranks as processes of one host. Rank 0 makes the segment and hands its descriptor to the others
// over an abstract Unix socket, so nothing has a name in any file system and nothing can be left.
#pragma once

#include <memory>
#include <string>

#include "transport/shared_transport.hpp"

namespace sinew {

struct ShmJoin {
  std::string rendezvous;  // a name nobody else on the host uses; unguessable is better
  int rank = 0;
  int size = 1;
  SegmentOptions options;
  bool pull = true;  // read other ranks' memory where that is allowed; equal on all ranks
  int cores = 0;     // processors all ranks together may use; 0: find out
  int domain = -1;   // of memory, which this rank is in; -1: that of its processors, if any
  Check check{};     // called while others are waited for; empty: nobody knows more
};

/// Returns when all ranks have joined. Throws Error{timeout} that names who is missing.
std::unique_ptr<Transport> join_shm(const ShmJoin& join, Deadline deadline);

}  // namespace sinew
