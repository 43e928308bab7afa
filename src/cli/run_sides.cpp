#include "cli/run_sides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include <sinew/error.hpp>
#include "cli/profile_folder.hpp"

namespace sinew {
namespace {

RunSide read_side(const std::string& folder, const report::SummaryOptions& options) {
  RunSide side;
  side.side.name = folder;
  for (auto& [run_folder, traces] : read_runs(folder)) {
    auto profile = trace::summarize_in_place(traces);
    const auto configuration = report::configuration_of(profile);
    if (!side.side.runs.empty() && configuration != side.configuration)
      throw Error(Errc::invalid_argument,
                  fmt::format("{} holds runs of different configurations, which have no mean: {} "
                              "and {}",
                              folder, side.configuration, configuration));
    side.configuration = configuration;
    side.side.runs.push_back(report::summarize(profile, traces, options));
    side.last_profile = std::move(profile);
    side.last_folder = run_folder;
  }
  return side;
}

}  // namespace

std::vector<RunSide> read_sides(const std::vector<std::string>& folders,
                                const report::SummaryOptions& options) {
  std::vector<RunSide> sides;
  for (const auto& folder : folders) {
    auto next = read_side(folder, options);
    const auto same = std::find_if(sides.begin(), sides.end(), [&](const RunSide& side) {
      return folders.size() > 2 && side.configuration == next.configuration;
    });
    if (same == sides.end()) {
      sides.push_back(std::move(next));
      continue;
    }
    same->side.name += ", " + next.side.name;
    std::move(next.side.runs.begin(), next.side.runs.end(), std::back_inserter(same->side.runs));
    same->last_profile = std::move(next.last_profile);
    same->last_folder = std::move(next.last_folder);
  }
  return sides;
}

}  // namespace sinew
