// One function a format; import.cpp chooses.
#pragma once

#include <span>

#include "imports/lines.hpp"
#include "trace/profile.hpp"

namespace sinew::imports {

/// Text files of mpitrace, of any ranks of one job, in today's layout and in the one before 2019.
trace::Profile read_mpitrace(std::span<const Source> sources);
/// The report of mpiP, which holds all ranks.
trace::Profile read_mpip(std::span<const Source> sources);
/// Timelines of Horovod, terminated or not. A timeline does not say whose it is.
trace::Profile read_horovod(std::span<const Source> sources);
/// Traces of the PyTorch profiler, one a rank.
trace::Profile read_kineto(std::span<const Source> sources);

}  // namespace sinew::imports
