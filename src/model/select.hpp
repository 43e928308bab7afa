// Which algorithm for which call: estimates from a small table of costs, one function.
#pragma once

#include <cstdint>
#include <span>

#include <sinew/algorithms.hpp>

namespace sinew {

/// What things cost on a medium, in nanoseconds. Equal on all ranks, or they would choose apart.
struct CostTable {
  double message_ns;       // one message between two ranks, however short
  double message_byte_ns;  // each byte of it, copied in and out
  double wait_ns;          // noticing that others have published
  double publish_byte_ns;  // copying into one's slot
  double gather_byte_ns;   // reading another's slot
  double reduce_byte_ns;   // combining, for each byte of each input
  double slot_bytes;
  double node_message_ns = 0;  // a message to another node, on top
  double node_byte_ns = 0;     // each byte of all that a node sends to others
  double post_ns = 0;          // what a message costs the processor at each end, beside its bytes
  double turn_ns = 0;          // until a rank that was waiting has a core again
  int crowded_by = 0;  // cores that do the work of all ranks, where messages dominate; 0: enough
};

/// What carries messages between the ranks of a node.
enum class Medium : std::uint8_t { memory, sockets, mpi };

/// For `ranks` that share `cores`: when there are more ranks, they wait for each other's turns and
/// each has only a share of a core.
CostTable cost_table(Medium medium, std::uint64_t slot_bytes, int ranks, int cores);

/// How deep to pipeline `bytes`; 1 for algorithms that do not.
std::uint32_t segments_for(const Algorithm& algorithm, std::uint64_t bytes,
                           std::uint64_t chunk_bytes);

/// Whether any two nodes have two ranks or more each, which is where levels can pay.
bool has_levels(std::span<const int> node_of);

/// Time of one call on `bytes` (the large buffer of a rank), derived from the schedule itself.
double estimate_ns(const Algorithm& algorithm, Place place, std::uint64_t bytes,
                   const CostTable& cost);

}  // namespace sinew
