// What `sinew doctor` looks at. Each check looks at one thing and says how to repair it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinew {

enum class Level : std::uint8_t { ok, warn, fail };

struct Checked {
  std::string name;
  Level level = Level::ok;
  std::string value;
  std::string repair;  // "" when there is nothing to do
};

/// Processors this process may use at a time: its affinity, cut by the quota of its cgroup.
double usable_cores();

/// Everything, for a job of `ranks` ranks (0: as many as there are cores).
std::vector<Checked> examine(int ranks);

/// Programs and libraries that `sinew bench` can compare with.
std::vector<Checked> examine_peers();

}  // namespace sinew
