#include "cli/profile_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <sinew/error.hpp>

namespace sinew {

namespace fs = std::filesystem;

std::vector<trace::Trace> read_folder(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed))
    if (entry.path().extension() == ".trace") paths.push_back(entry.path().string());
  if (failed) throw Error(Errc::invalid_argument, fmt::format("{}: {}", folder, failed.message()));
  if (paths.empty())
    throw Error(Errc::invalid_argument,
                fmt::format("{} has no traces (*.trace): did the program call MPI?", folder));
  std::sort(paths.begin(), paths.end());
  std::vector<trace::Trace> traces;
  for (const auto& path : paths) try {
      traces.push_back(trace::read_trace_file(path));
    } catch (const Error& error) {
      fmt::print(stderr, "sinew: {}; left out\n", error.what());
    }
  return traces;
}

}  // namespace sinew
