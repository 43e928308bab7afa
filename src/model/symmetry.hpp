// Whether one rank can stand for all: then a ring of 100,000 ranks costs no more than one of them.
#pragma once

#include <cstdint>
#include <functional>

#include <sinew/schedule.hpp>

namespace sinew {

enum class Symmetry : std::uint8_t {
  none,
  shift,  // rank r does what rank 0 does, with peer + r (mod size) for each peer
  flip,   // the same with peer xor r
};

/// Found by comparing rank 0's schedule with those of a few others: who sends how much to whom in
/// which round, and what each does alone. Board steps are never symmetric, because hosts are small.
Symmetry find_symmetry(int size, const std::function<Schedule(int rank)>& schedule);

/// Whether `schedule` is what `first`, rank 0's, becomes under `symmetry`.
bool is_image(const Schedule& first, const Schedule& schedule, Symmetry symmetry);

}  // namespace sinew
