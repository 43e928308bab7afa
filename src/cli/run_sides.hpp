// Runs on the command line: which are repeats of each other, and which are to be compared.
#pragma once

#include <string>
#include <vector>

#include "report/comparison.hpp"

namespace sinew {

struct RunSide {
  report::Side side;
  std::string configuration;
  trace::Profile last_profile;  // of the last of its runs
  std::string last_folder;
};

/// Two folders are two sides. More are sides by their configurations, so that nothing is averaged
/// that is not a repeat. A folder of folders holds repeats, which must have one configuration.
std::vector<RunSide> read_sides(const std::vector<std::string>& folders,
                                const report::SummaryOptions& options);

}  // namespace sinew
