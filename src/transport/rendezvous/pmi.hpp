// PMI-1, in which MPICH's process manager (and srun --mpi=pmi2) speaks with the processes it
// started: lines of text over a descriptor that they inherit.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <sinew/transport.hpp>

namespace sinew {

using PmiWords = std::map<std::string, std::string, std::less<>>;

/// "cmd=get_result rc=0 value=x" as words. What has no '=' is left out.
PmiWords parse_pmi(std::string_view line);

/// Rank 0's value on every rank; called by all of them. Speaks PMI from its beginning to its end,
/// so MPI cannot be initialised by the same process afterwards. Throws Error.
std::string share_by_pmi(int descriptor, int rank, std::string_view value, Deadline deadline);

/// Names the manager at the other end of the descriptor: equal for all processes that it started on
/// this host, different from that of every other job here. "" when it cannot be told.
std::string pmi_manager(int descriptor);

}  // namespace sinew
