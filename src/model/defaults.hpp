// What things cost where nobody has calibrated: figures that come with the library.
#pragma once

#include <cstdint>

#include "model/network.hpp"

namespace sinew {

/// What carries messages between the ranks of a node.
enum class Medium : std::uint8_t { memory, sockets, mpi };

/// One rank a core of one host. Rounded from `sinew calibrate -p 2` on two cores of a virtual
/// machine, in the faster of its two cache speeds, with the longest stretches of each curve kept:
/// other machines differ by factors, but mostly by the same one for all that an algorithm does.
Network default_network(Medium medium);

}  // namespace sinew
