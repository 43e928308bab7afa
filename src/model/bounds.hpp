// What no algorithm can beat, by the numbers of a network.
#pragma once

#include <sinew/types.hpp>
#include "model/network.hpp"

namespace sinew {

/// The least time for `bytes` (the larger user buffer) among `size` ranks: whichever is longest of
/// the messages in a row that news of all ranks needs, the bytes that a rank must send or receive,
/// and the bytes that have to be combined. With shared memory one notice may be enough, and bytes
/// cost what the cheapest way of reading them does.
double lower_bound_ps(Collective collective, int size, double bytes, const Network& network);

}  // namespace sinew
