// Traces of Sinew's own operations, one file a process.
#pragma once

#include <memory>
#include <string>

#include <sinew/trace.hpp>

namespace sinew {

/// An observer that writes FOLDER/HOST.PID.trace (docs/format-trace.md), any number of
/// communicators and threads. Makes the folder. Throws Error{system} when that cannot be.
std::shared_ptr<Observer> trace_to(const std::string& folder, int rank, int size);

}  // namespace sinew
