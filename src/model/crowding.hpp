// Ranks that outnumber the cores of their host: what that does to a network, and how little of it
// can be known.
#pragma once

#include <string>
#include <vector>

#include "model/network.hpp"

namespace sinew {

/// Ranks of the fullest host.
int ranks_of_host(const Network& network, int ranks);

/// The network as `ranks` would find it. With enough cores it is the same. Otherwise a rank has its
/// share of a core for all its bytes, and every message waits for as many turns as ranks share a
/// core: switches where those that wait yield, ticks of the scheduler where they spin. The error
/// bar widens (3 times and 10 times), and `warnings` gets a sentence that says so.
Network crowded(const Network& network, int ranks, std::vector<std::string>& warnings);

}  // namespace sinew
