// The traces of a run.
#pragma once

#include <string>
#include <vector>

#include "trace/reader.hpp"

namespace sinew {

/// Every *.trace of a folder. What is none is named on stderr and left out; throws
/// Error{invalid_argument} when there is no folder or nothing in it.
std::vector<trace::Trace> read_folder(const std::string& folder);

struct FolderTraces {
  std::string folder;
  std::vector<trace::Trace> traces;
};

/// The runs of a folder: its own traces, or those of each folder in it, which are repeats then.
std::vector<FolderTraces> read_runs(const std::string& folder);

}  // namespace sinew
