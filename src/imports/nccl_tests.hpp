// What nccl-tests and rccl-tests measured: the table they print, and their JSON.
#pragma once

#include <vector>

#include <sinew/types.hpp>
#include "imports/lines.hpp"

namespace sinew::imports {

struct NcclTimes {
  Collective collective{};
  int ranks = 0;  // 0: not told
  struct Row {
    double bytes = 0;  // of the larger buffer
    double us = 0;     // the shorter of out of place and in place
  };
  std::vector<Row> rows{};  // ascending in bytes
};

/// The collective is told by the name of the program where the text has it, else by `collective`.
/// Throws Error{invalid_argument} that names what is missing.
NcclTimes read_nccl_tests(const Source& source, std::string_view collective);

}  // namespace sinew::imports
