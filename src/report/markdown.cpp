#include <fmt/format.h>

#include "report/report_page.hpp"
#include "report/words.hpp"

namespace sinew::report {
namespace {

// What would end a cell, or begin something else.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '<' || c == '`' || c == '*' || c == '_') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string table_text(const TextTable& table, std::string_view heading) {
  auto text = fmt::format("{} {}\n\n", heading, cell(table.title));
  if (!table.about.empty()) text += cell(table.about) + "\n\n";
  for (const auto& column : table.columns) text += fmt::format("| {} ", cell(column));
  text += "|\n|---";
  for (std::size_t i = 1; i < table.columns.size(); ++i) text += "|--:";
  text += "|\n";
  for (const auto& row : table.rows) {
    for (const auto& value : row) text += fmt::format("| {} ", cell(value));
    text += "|\n";
  }
  return text + "\n";
}

}  // namespace

std::string to_markdown(const Summary& summary, std::string_view title, std::string_view command,
                        std::span<const TextTable> extra) {
  auto text = fmt::format("# {}\n\n{}\n\n", cell(title), cell(summary.verdict));
  for (const auto& [what, value] : headline(summary))
    text += fmt::format("- **{}** {}\n", cell(value), cell(what));
  text += "\n## Findings\n\n";
  if (summary.findings.empty()) text += "None.\n\n";
  for (const auto& finding : summary.findings) {
    text += fmt::format("### {}\n\n", cell(finding.claim));
    text += fmt::format("Confidence: {}.{}\n\n", name(finding.confidence),
                        finding.benefit ? " " + cell(benefit_text(*finding.benefit)) : "");
    for (const auto& line : finding.arithmetic) text += fmt::format("- {}\n", cell(line));
    for (const auto& line : finding.advice) text += fmt::format("- Advice: {}\n", cell(line));
    if (!finding.command.empty()) text += fmt::format("\n```sh\n{}\n```\n", finding.command);
    text += '\n';
  }
  const auto add = [&](const TextTable& table) {
    if (!table.rows.empty()) text += table_text(table, "##");
  };
  for (const auto& table : extra) add(table);
  add(split_table(summary));
  add(routine_table(summary));
  if (const auto routines = sized_routines(summary); !routines.empty()) {
    text += "## Message sizes\n\n";
    for (const auto* routine : routines) text += table_text(size_table(*routine), "###");
  }
  add(phase_table(summary));
  add(rank_table(summary));
  if (!summary.matrix.empty()) text += table_text(matrix_table(summary), "##");
  add(bandwidth_table(summary));
  add(algorithm_table(summary));
  add(model_table(summary));
  add(scaling_table(summary));
  add(more_workers_table(summary));
  add(compression_table(summary));
  if (!summary.notes.empty()) {
    text += "## Notes\n\n";
    for (const auto& note : summary.notes) text += fmt::format("- {}\n", cell(note));
    text += '\n';
  }
  text += fmt::format("## Method\n\n{}\n\n", cell(method_text(summary)));
  add(environment_table(summary));
  return text + fmt::format("Made by `{}`.\n", command);
}

}  // namespace sinew::report
