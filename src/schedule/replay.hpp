// A world of schedules, told round by round: which chunk of which rank comes to hold what. And what
// becomes of it when one step is changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sinew/schedule.hpp>

namespace sinew {

/// A chunk of a rank's input.
struct Leaf {
  int rank = 0;
  std::uint32_t chunk = 0;
  friend auto operator<=>(const Leaf&, const Leaf&) = default;
};

/// A chunk gets a value.
struct Change {
  int rank = 0;  // in whose memory
  std::uint32_t round = 0;
  Buf buf{};
  std::uint32_t chunk = 0;
  std::vector<Leaf> holds;  // what it combines from now on
  friend bool operator==(const Change&, const Change&) = default;
};

/// By round, then by rank. The world must verify: throws Error{invalid_argument} where it does not.
std::vector<Change> replay(const World& world);

/// One step done otherwise.
struct Edit {
  int rank = 0;
  std::size_t step = 0;  // of that rank's schedule
  std::string what;      // "without it"
  std::string verdict;   // the counterexample, or that nothing is lost by it
  bool refused = false;
};
/// For every step: what the verifier says without it, and where it adds, when it overwrites
/// instead.
std::vector<Edit> try_edits(const World& world);

}  // namespace sinew
