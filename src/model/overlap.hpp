// Buckets that travel while the backward pass still computes: when the last has arrived.
#pragma once

#include <span>

namespace sinew {

/// One part of the gradient: from when on it can travel, and how long that takes. Same unit.
struct Travelling {
  double ready = 0;
  double takes = 0;
};

/// One stream: each bucket starts when it is ready and the one before has arrived. Times count from
/// the start of the backward pass. Returns when the last has arrived; 0 for none.
double last_arrival(std::span<const Travelling> buckets);

/// The stretch by which communication outlasts a backward pass of `backward`.
double exposed(std::span<const Travelling> buckets, double backward);

/// Layer i can be computed when it has arrived and layer i - 1 is done; layers travel one after
/// another, in order, from the start. Returns when the last is computed.
double prefetched(std::span<const Travelling> layers, std::span<const double> compute);

}  // namespace sinew
