// What a rank is doing, read from its status line, for people.
#pragma once

#include <string>

#include "transport/descriptor.hpp"
#include "transport/segment.hpp"

namespace sinew {

std::uint64_t pack_kind(const OpDescriptor& descriptor) noexcept;
OpDescriptor unpack(const StatusLine::Entry& entry) noexcept;

/// Whether a process is stopped (SIGSTOP, a debugger).
bool is_stopped(int pid);

/// "last in operation #411, allreduce of 8 f32 sum by ring; process 77 is stopped"
std::string last_seen_in(const StatusLine& status);

}  // namespace sinew
