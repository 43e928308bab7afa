// PMIx, by which Open MPI, PRRTE and srun --mpi=pmix serve the processes they started. The library
// is the one that is installed, loaded when it is needed.
#pragma once

#include <string>
#include <string_view>

#include <sinew/transport.hpp>

namespace sinew {

/// Rank 0's value on every rank; called by all of them. Throws Error, also where no PMIx library is
/// found.
std::string share_by_pmix(int rank, std::string_view value, Deadline deadline);

}  // namespace sinew
