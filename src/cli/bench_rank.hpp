// Ranks of a benchmark that mpirun starts.
#pragma once

#include "cli/bench_contender.hpp"

namespace sinew {

/// One mpirun for all ranks of a group; each is `sinew bench-rank`.
bench::Launcher mpi_ranks(const BenchSetup& setup);

/// The MPI to start ranks with: the one named, or the first that is here with its plugin. Throws
/// Error that says what is missing.
std::string mpi_to_start(const std::string& wanted);

}  // namespace sinew
