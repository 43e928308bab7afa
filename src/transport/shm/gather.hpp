// How processes of one host find each other: rank 0 listens at a name, collects everybody, and
// hands out the segment, so that whoever gets it knows that all are there.
#pragma once

#include <sched.h>

#include <memory>

#include "transport/segment.hpp"
#include "transport/shm/shm.hpp"

namespace sinew {

/// Where this process may run.
cpu_set_t own_cpus();

struct Gathered {
  std::shared_ptr<Segment> segment;
  int cores;  // of all ranks together
};

/// Of rank 0. Whoever does not belong is told why, and so are those who have come already; then it
/// throws Error with the same reason. Throws Error{timeout} that names who is missing.
Gathered gather_ranks(const ShmJoin& join, Deadline deadline);
/// Of the others.
Gathered meet_rank_0(const ShmJoin& join, Deadline deadline);

}  // namespace sinew
