// Ranks on several hosts: those of one host over shared memory, the rest over what reaches them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <sinew/transport.hpp>

namespace sinew {

/// What a routed transport is made from.
struct Routes {
  std::unique_ptr<Transport> far;   // between all ranks
  std::unique_ptr<Transport> near;  // between those of this host, in order; null: we are alone
  std::vector<int> node_of;         // of each rank
};

/// `far` itself where every rank has a host of its own. The answer is the same on all ranks, since
/// they choose algorithms by it.
std::unique_ptr<Transport> route(Routes routes);

}  // namespace sinew
