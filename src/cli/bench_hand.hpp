// The flat allreduce written by hand over the same shared memory: what a schedule costs beside it.
#pragma once

#include "measure/launch.hpp"

namespace sinew {

/// Ranks for `--against hand`: f32 sum allreduce in place, up to a slot's length.
bench::Launcher hand_written_ranks(bool bind);

}  // namespace sinew
