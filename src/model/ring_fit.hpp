// A network from times of one collective, where nothing else can be measured: as if it had run by
// an algorithm whose messages are all alike.
#pragma once

#include <span>

#include "model/fit.hpp"

#include <sinew/types.hpp>

namespace sinew {

/// `times`: bytes of the larger buffer and picoseconds, ascending. An allreduce is taken for a ring
/// (2(P-1) messages of a P-th), an allgather or a reduce-scatter for one (P-1), an alltoall for
/// pairwise exchange. Throws Error{invalid_argument} for others, or fewer than two times.
Network fit_ring(Collective collective, int ranks, std::span<const Sample> times);

}  // namespace sinew
