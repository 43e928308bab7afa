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
                fmt::format("{} has no traces (*.trace): did the program call MPI, or run with "
                            "SINEW_TRACE set?",
                            folder));
  std::sort(paths.begin(), paths.end());
  std::vector<trace::Trace> traces;
  for (const auto& path : paths) try {
      traces.push_back(trace::read_trace_file(path));
    } catch (const Error& error) {
      fmt::print(stderr, "sinew: {}; left out\n", error.what());
    }
  if (traces.empty())
    throw Error(Errc::invalid_argument,
                fmt::format("none of the {} traces in {} could be read", paths.size(), folder));
  return traces;
}

std::vector<FolderTraces> read_runs(const std::string& folder) {
  std::vector<std::string> inner;
  bool own = false;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    own |= entry.path().extension() == ".trace";
    std::error_code none;
    if (!entry.is_directory(none)) continue;
    for (const auto& file : fs::directory_iterator(entry.path(), none))
      if (file.path().extension() == ".trace") {
        inner.push_back(entry.path().string());
        break;
      }
  }
  if (own || inner.empty()) return {{folder, read_folder(folder)}};
  std::sort(inner.begin(), inner.end());
  std::vector<FolderTraces> runs;
  for (const auto& run : inner) runs.push_back({run, read_folder(run)});
  return runs;
}

}  // namespace sinew
