// Joining a group whose ranks somebody else has brought together: a framework with a store of its
// own. Everybody else calls connect().
#pragma once

#include <memory>

#include <sinew/communicator.hpp>
#include "transport/rendezvous/store.hpp"

namespace sinew {

/// A transport between `size` ranks that all see `store`, which is theirs alone. Of the environment
/// only what is said about transports, interfaces and secrets counts. Throws Error{timeout} that
/// names who did not come.
std::unique_ptr<Transport> join_by_store(std::shared_ptr<Store> store, int rank, int size,
                                         const Options& options);

/// The options, with the model that SINEW_MODEL names where they have none, and with the trials
/// that SINEW_TRIAL asks for where they leave that open. Throws Error that names the variable, or
/// the file and the line, and what is wrong.
Options with_environment(Options options);

}  // namespace sinew
