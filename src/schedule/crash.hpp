// Does anybody wait for ever when a rank dies in the middle of a collective? Tried in every order
// of steps, with the death at any point.
//
// Only a rank that waits for the dead one itself sees the death; to all others the news travels as
// messages, which take as long as they like, and which everybody passes on once. Values need no
// second look: whoever has done all its steps has what verify() proved, since the order of steps
// does not change what they carry.
#pragma once

#include <cstdint>
#include <optional>

#include <sinew/verify.hpp>

namespace sinew {

struct CrashVerdict {
  std::uint64_t states = 0;
  std::uint64_t endings = 0;  // in which nothing can happen any more
  std::optional<Fault> fault;
};

struct CrashConditions {
  Sends sends = Sends::buffered;
  bool spreads_news = true;                // false: to see what it is good for
  std::uint64_t most_states = 50'000'000;  // more is a fault
};

/// The world must be well-formed.
CrashVerdict explore_crash(const World& world, const CrashConditions& conditions = {});

}  // namespace sinew
