// Traces of Sinew's own operations, one file a process.
#pragma once

#include <memory>
#include <string>

#include <sinew/trace.hpp>
#include "trace/writer.hpp"

namespace sinew {

/// An observer that writes FOLDER/HOST.PID.trace (docs/format-trace.md), any number of
/// communicators and threads. Makes the folder. Throws Error{system} when that cannot be.
std::shared_ptr<Observer> trace_to(const std::string& folder, int rank, int size);

/// For those who write events themselves: the file of this process in FOLDER, which is made, and
/// what every such file says at its beginning.
std::string trace_path(const std::string& folder);
void note_process(trace::Writer& writer, int rank, int size);

}  // namespace sinew
