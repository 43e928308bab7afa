// The core of recursive doubling, for any subset of ranks: two-level algorithms use it on leaders.
#pragma once

#include <span>

#include "schedule/builder.hpp"

namespace sinew {

/// Every rank of `ranks` ends with the reduction of all of their `sum` chunks in `sum`; `other` is
/// room of the same size. Takes the same number of rounds on each of them.
void double_among(Builder& b, std::span<const int> ranks, int index, Chunks sum, Chunks other);

}  // namespace sinew
