// The tables of `sinew demo --seed-run`: those by which the communication of such runs is usually
// described, from traces instead of logs and link speeds.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "cli/demo_parts.hpp"
#include "cli/profile_folder.hpp"
#include "report/report_page.hpp"

namespace sinew {
namespace {

using report::TextTable;

constexpr std::size_t kMostSized = 4;  // kinds of messages whose sizes are listed
constexpr std::size_t kMostSizes = 5;

double volume(const report::RoutineSummary& routine) {
  return routine.spread.mean * static_cast<double>(routine.calls);
}

/// Those that carry most bytes first: gradients, not what is said about them.
std::vector<report::RoutineSummary> by_volume(const report::Summary& summary) {
  auto routines = summary.routines;
  std::stable_sort(routines.begin(), routines.end(),
                   [](const auto& a, const auto& b) { return volume(a) > volume(b); });
  return routines;
}

TextTable operation_table(const std::vector<report::RoutineSummary>& routines) {
  TextTable table{"Communication by operation",
                  "Bytes are those that callers gave, over all workers; waiting for other workers "
                  "is told from moving bytes by when each of them came.",
                  {"operation", "calls", "mean size", "bytes of all", "time", "share", "waiting"},
                  {}};
  for (const auto& routine : routines)
    table.rows.push_back({routine.name, fmt::format("{}", routine.calls),
                          human_bytes(static_cast<std::uint64_t>(routine.spread.mean)),
                          human_bytes(static_cast<std::uint64_t>(volume(routine))),
                          report::seconds(routine.seconds), report::percent(routine.share),
                          report::percent(routine.waited_share)});
  return table;
}

TextTable without(TextTable table, std::initializer_list<std::string_view> columns) {
  for (std::size_t i = table.columns.size(); i-- > 0;) {
    if (std::find(columns.begin(), columns.end(), table.columns[i]) == columns.end()) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    table.columns.erase(table.columns.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
  }
  return table;
}

}  // namespace

std::string seed_tables(const std::string& folder) {
  auto traces = read_folder(folder);
  const auto profile = trace::summarize_in_place(traces);
  const auto summary = report::summarize(profile, traces);
  const auto routines = by_volume(summary);
  std::string text = "\nSizes of messages, as measured:\n";
  for (std::size_t i = 0; i < std::min(kMostSized, routines.size()); ++i)
    if (!routines[i].sizes.empty())
      text += report::table_text(report::size_table(routines[i]), kMostSizes);
  text += report::table_text(operation_table(routines));
  text += report::table_text(
      without(report::phase_table(summary), {"+-", "median", "95 % below", "on the wire"}));
  return text + report::table_text(report::compression_table(summary));
}

}  // namespace sinew
