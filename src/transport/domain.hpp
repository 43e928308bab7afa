// Which part of a host's memory is near: the last-level cache, or the memory controller.
#pragma once

#include <sched.h>

#include <span>
#include <vector>

namespace sinew {

/// For each set, the domain that all its processors are in, by a number equal in all processes; -1
/// when they are in several, or are all that the host has (a rank bound to nothing).
std::vector<int> domains_of(std::span<const cpu_set_t> sets);

/// Domains of all ranks as a node map, numbered from 0 in order of appearance. Empty when one is
/// not known (-1) or there is only one.
std::vector<int> nodes_from(std::span<const int> domains);

}  // namespace sinew
