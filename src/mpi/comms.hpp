// Making MPI communicators, with a deadline wherever MPI lets us have one.
#pragma once

#include <mpi.h>

#include <span>
#include <string>
#include <vector>

#include <sinew/transport.hpp>
#include "mpi/hosts.hpp"

namespace sinew::mpi {

/// What MPI says of one of its error codes.
std::string error_text(int code);

/// A twin of `comm`. Called by all its ranks. Throws Error{timeout} when not all do.
MPI_Comm duplicate(MPI_Comm comm, Deadline deadline);
/// Some of the ranks of `comm`, which all must be about to call this: MPI waits for them for ever.
MPI_Comm create_group(MPI_Comm comm, std::span<const int> members, int tag);
/// What each rank is. Throws Error{timeout}.
std::vector<Resident> exchange_residents(MPI_Comm comm, Deadline deadline);

}  // namespace sinew::mpi
