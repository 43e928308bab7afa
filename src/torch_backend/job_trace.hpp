// The trace of a torch job: the operations of all its groups, its optimizer's steps, and phases
// that it names, in one file a process.
#pragma once

#include <memory>
#include <string>

#include <sinew/trace.hpp>

namespace sinew {

/// The observer of this process's trace; null unless SINEW_TRACE names a folder. `rank` and `size`
/// are those of the first group, which is that of all ranks.
std::shared_ptr<Observer> process_trace(int rank, int size);
/// What comes from now on belongs to this phase; "": to none. Nothing happens without a trace.
void enter_phase(const std::string& name);
/// An optimizer takes a step, which ends an iteration.
void mark_step(std::uint64_t begin_ns, std::uint64_t end_ns);

}  // namespace sinew
