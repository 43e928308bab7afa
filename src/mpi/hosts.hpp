// Who shares which processors: what each rank tells of its host when it joins.
#pragma once

#include <sched.h>

#include <cstdint>
#include <span>
#include <vector>

namespace sinew::mpi {

/// Fixed layout: it is gathered from all ranks.
struct Resident {
  std::uint32_t protocol = 0;  // what it speaks
  std::int32_t quota = 1;      // processors its container may use
  std::uint64_t host = 0;      // equal for ranks of one running kernel
  cpu_set_t processors{};      // it may run on
};

Resident this_resident();

/// Processors for all ranks together, as the most crowded host has them: at least as many as ranks
/// means that every rank has one. The same on all ranks.
int shared_cores(std::span<const Resident> residents);

/// The host of each rank, numbered as they come; empty when it is one for all.
std::vector<int> nodes_of(std::span<const Resident> residents);

}  // namespace sinew::mpi
