// How often a schedule runs when its data does not go in one piece.
#pragma once

#include <sinew/schedule.hpp>
#include "model/network.hpp"

namespace sinew {

/// Bytes of a chunk when the larger user buffer has `bytes`.
double chunk_bytes(const Schedule& schedule, double bytes);

/// Chunks go through slots as far as those reach, and in messages as far as that pays.
double passes_of(const Schedule& schedule, double bytes, const Network& network);

}  // namespace sinew
