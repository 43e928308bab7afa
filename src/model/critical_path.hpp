// The longest chain of events of one collective, predicted or recorded: what made it take as long
// as it did, and who waited for whom meanwhile.
#pragma once

#include <span>
#include <vector>

#include "model/simulate.hpp"

namespace sinew {

/// How long a rank did nothing because another had not come.
struct Waiting {
  std::int32_t rank = 0;
  std::int32_t awaited = 0;
  Picoseconds time = 0;
};

struct CriticalPath {
  std::vector<Activity> steps{};   // in time; each begins when the one before has ended, or later
  std::vector<Waiting> waiting{};  // longest first
  Picoseconds end = 0;
};

/// Of activities in any order. What takes no time is left out.
CriticalPath critical_path(std::span<const Activity> activities);

}  // namespace sinew
