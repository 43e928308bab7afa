// Files as mpitrace leaves them, written at MPI_Finalize when SINEW_FORMAT=mpitrace.
#pragma once

#include <string>
#include <vector>

namespace sinew::preload {

class Session;

/// mpitrace's own variables, so that job scripts keep working.
struct MpitraceSettings {
  bool wanted = false;
  std::string folder;      // TRACE_DIR; empty: the working directory
  std::string job;         // of the batch system; empty: the process of rank 0
  bool all_ranks = false;  // SAVE_ALL_TASKS
  std::vector<int> ranks;  // SAVE_LIST, beside rank 0; empty: least, median and most communication
};
MpitraceSettings read_mpitrace_settings();

/// Called while MPI still works. Ranks tell rank 0 their times, and it tells them who writes. A
/// rank that does not answer is named and left out after a while.
void write_mpitrace_files(Session& session, const MpitraceSettings& settings) noexcept;

}  // namespace sinew::preload
