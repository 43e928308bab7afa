// Starting a contender's ranks: forked here, or by a program such as mpirun.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "measure/control.hpp"

namespace sinew::bench {

struct Launch {
  std::string control;  // ControlOwner::path()
  int ranks = 1;
  int output_fd = -1;  // where the children's stdout and stderr go
};

/// Starts processes that sooner or later serve() as all ranks of the group, and appends those
/// that are children of this process at once, so that a failure half-way leaves none behind.
using Launcher = std::function<void(const Launch&, std::vector<pid_t>& children)>;

/// One forked child a rank. `body` gets the rank's control and usually makes a contender and calls
/// serve(); the child ends with it. Call from the thread that outlives the run: the children are
/// killed with it.
Launcher fork_ranks(std::function<void(Control&)> body);

/// One forked child whose threads are the ranks.
Launcher fork_threads(std::function<void(Control&)> body);

/// One program for all ranks. "{control}" and "{ranks}" in the words are replaced.
Launcher spawn_once(std::vector<std::string> words);
/// One program a rank. "{control}", "{ranks}" and "{rank}" are replaced.
Launcher spawn_each(std::vector<std::string> words);

}  // namespace sinew::bench
