// What algorithms are chosen by: a network model, and what the transport says about its ranks.
#pragma once

#include <sinew/communicator.hpp>
#include "model/select.hpp"

namespace sinew {

/// The model that was given, where it is about what carries the messages here; else what the
/// library comes with. Who is on which node, and how many cores there are, the transport knows
/// better than a file. Throws Error{invalid_argument} that names the line.
Surroundings surroundings_of(Transport& transport, const Options& options);

}  // namespace sinew
