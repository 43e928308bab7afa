// The report for terminals.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/wrapped.hpp"
#include "report/report_page.hpp"
#include "report/run_words.hpp"

namespace sinew::report {
namespace {

constexpr std::size_t kColumns = 80;

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return right ? space + std::string(text) : std::string(text) + space;
}

std::string cut(std::string_view text, std::size_t width) {
  if (width_of(text) <= width) return std::string(text);
  std::string result;
  for (const char c : text) {
    if ((c & 0xC0) != 0x80 && width_of(result) + 3 >= width) break;
    result += c;
  }
  return result + "..";
}

struct Bar {
  std::string name, value;
  double share = 0, rest = 0;  // behind it, drawn otherwise
};

/// "compute       2.1 s  ########"
std::string bars_text(std::string_view title, const std::vector<Bar>& bars) {
  if (bars.empty()) return "";
  std::size_t name = 0, value = 0;
  for (const auto& bar : bars) {
    name = std::max(name, std::min<std::size_t>(width_of(bar.name), 30));
    value = std::max(value, width_of(bar.value));
  }
  const auto room = static_cast<double>(kColumns - name - value - 4);
  auto text = fmt::format("\n{}\n", title);
  for (const auto& bar : bars) {
    const auto length = [&](double share) {
      return static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * room));
    };
    auto line = padded(cut(bar.name, name), name, false) + "  " + padded(bar.value, value, true) +
                "  " + std::string(length(bar.share), '#') +
                std::string(length(bar.share + bar.rest) - length(bar.share), '=');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string split_bars(const Summary& summary) {
  std::vector<Bar> bars;
  const auto table = split_table(summary);
  const auto& split = summary.split;
  const auto share_of = [&](std::string_view part) {
    const auto value = part == "compute"                   ? split.compute_s
                       : part == "exposed communication"   ? split.moving_s
                       : part == "waiting for other ranks" ? split.waiting_s
                       : part == "data loading"            ? split.data_s
                       : part == "compression"             ? split.compress_s
                       : part.starts_with("(hidden")       ? split.hidden_s
                                                           : split.other_s();
    return value / split.elapsed_s;
  };
  std::string unknown;
  for (const auto& row : table.rows)
    if (row[2].empty())
      unknown += wrapped(fmt::format("{}: {}", row[0], row[1]), kColumns, 2) + '\n';
    else
      bars.push_back({row[0], row[1] + "  " + row[2], share_of(row[0])});
  return bars_text(table.title + ", mean of a rank", bars) + unknown;
}

std::string routine_bars(const Summary& summary) {
  constexpr std::size_t kMost = 10;
  std::vector<Bar> bars;
  for (const auto& routine : summary.routines)
    if (bars.size() < kMost)
      bars.push_back({routine.name,
                      fmt::format("{} calls  {}  {}", routine.calls, seconds(routine.seconds),
                                  percent(routine.share)),
                      routine.share});
  return bars_text("Routines, all ranks", bars);
}

std::string bin_bars(const RoutineSummary& routine) {
  std::vector<Bar> bars;
  std::uint64_t most = 1;
  for (const auto& bin : routine.bins) most = std::max(most, bin.calls);
  for (const auto& bin : routine.bins)
    bars.push_back({fmt::format("  from {} B", bin.bytes),
                    fmt::format("{} calls  {}", bin.calls, seconds(bin.seconds)),
                    static_cast<double>(bin.calls) / static_cast<double>(most)});
  return bars_text(routine.name + ", calls by size", bars);
}

std::string rank_bars(const Summary& summary) {
  constexpr std::size_t kMost = 16;
  std::vector<Bar> bars;
  for (const auto& rank : summary.ranks)
    if (bars.size() < kMost && rank.elapsed_s > 0)
      bars.push_back({fmt::format("rank {}", rank.rank),
                      fmt::format("{} of {} communicating, {} waiting",
                                  seconds(rank.communication_s), seconds(rank.elapsed_s),
                                  rank.waited_s ? seconds(*rank.waited_s) : "not known"),
                      rank.communication_s / rank.elapsed_s});
  auto text = bars_text("Ranks", bars);
  if (summary.ranks.size() > kMost)
    text += fmt::format("({} more ranks)\n", summary.ranks.size() - kMost);
  return text;
}

// '#' computes, '=' is exposed communication.
std::string more_workers_bars(const Summary& summary) {
  if (!summary.more_workers) return "";
  const auto& steps = summary.more_workers->asked;
  double longest = 0;
  for (const auto& step : steps) longest = std::max(longest, step.step_ms);
  std::vector<Bar> bars;
  for (const auto& step : steps)
    bars.push_back({fmt::format("{} workers", step.workers), time_ms(step.step_ms),
                    (step.step_ms - step.exposed_ms) / longest, step.exposed_ms / longest});
  return bars_text("A step, modelled: = is exposed communication", bars);
}

std::string findings_part(const Summary& summary) {
  if (summary.findings.empty())
    return "\nFindings: none; nothing in these figures asks for a change.\n";
  std::string text = "\nFindings, the costliest first\n\n";
  const auto words = findings_text(summary.findings);
  std::size_t at = 0;
  while (at < words.size()) {
    const auto end = std::min(words.find('\n', at), words.size());
    const auto line = std::string_view(words).substr(at, end - at);
    const auto indent = std::min(line.find_first_not_of(" -"), line.size());
    text += wrapped(line, kColumns, indent) + '\n';
    at = end + 1;
  }
  return text;
}

}  // namespace

std::string table_text(const TextTable& table, std::size_t most_rows) {
  constexpr std::size_t kFirst = 26;
  if (table.rows.empty()) return "";
  std::vector<std::size_t> widths;
  for (const auto& column : table.columns) widths.push_back(width_of(column));
  const auto shown = std::min(most_rows, table.rows.size());
  for (std::size_t r = 0; r < shown; ++r)
    for (std::size_t i = 0; i < table.rows[r].size(); ++i)
      widths[i] = std::max(widths[i], width_of(table.rows[r][i]));
  widths[0] = std::min(widths[0], kFirst);
  std::size_t columns = 0, used = 0;
  for (; columns < widths.size() && used + widths[columns] + 2 <= kColumns + 2; ++columns)
    used += widths[columns] + 2;
  auto text = "\n" + table.title + "\n";
  if (table.columns.size() == 2 && widths[0] + widths[1] + 2 > kColumns) {  // sentences
    for (const auto& row : table.rows)
      text += wrapped(fmt::format("{}: {}", row[0], row[1]), kColumns, 2) + '\n';
    return text + wrapped(table.about) + '\n';
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string row;
    for (std::size_t i = 0; i < columns; ++i)
      row += (i == 0 ? "" : "  ") + padded(cut(cells[i], widths[i]), widths[i], i > 0);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  };
  line(table.columns);
  for (std::size_t r = 0; r < shown; ++r) line(table.rows[r]);
  if (shown < table.rows.size())
    text += fmt::format("({} more; --format md or csv has them)\n", table.rows.size() - shown);
  if (!table.about.empty()) text += wrapped(table.about) + '\n';
  return text;
}

std::string to_text(const Summary& summary, std::string_view title,
                    std::span<const TextTable> extra) {
  auto text = wrapped(title) + "\n\n" + wrapped(summary.verdict) + "\n\n";
  for (const auto& [what, value] : headline(summary))
    text += fmt::format("  {:>12}  {}\n", value, what);
  text += findings_part(summary);
  for (const auto& table : extra) text += table_text(table);
  if (summary.split.elapsed_s > 0) text += split_bars(summary);
  text += routine_bars(summary);
  std::size_t shown = 0;
  for (const auto* routine : sized_routines(summary)) {
    if (++shown > 3) break;
    text += bin_bars(*routine) + table_text(size_table(*routine), 10);
  }
  text += table_text(phase_table(summary));
  text += rank_bars(summary);
  text += table_text(bandwidth_table(summary), 8);
  text += table_text(algorithm_table(summary), 12);
  text += table_text(compression_table(summary));
  text += table_text(model_table(summary), 8);
  text += table_text(scaling_table(summary), 10);
  text += table_text(more_workers_table(summary));
  text += more_workers_bars(summary);
  text += '\n' + wrapped(method_text(summary)) + '\n';
  for (const auto& note : summary.notes) text += wrapped("note: " + note, kColumns, 6) + '\n';
  return text;
}

}  // namespace sinew::report
