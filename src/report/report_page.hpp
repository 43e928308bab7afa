// The report as pages for people: one HTML file that needs nothing else, or Markdown. Both print a
// Summary and calculate nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/summary.hpp"
#include "report/words.hpp"

namespace sinew::report {

/// `command` is how to make it again.
/// `comparison`: HTML of a section that comes after the findings, or empty.
std::string to_html(const Summary& summary, std::string_view title, std::string_view command,
                    const std::string& comparison = "");
/// A table as HTML, folded away behind `summary` unless that is empty.
std::string table_html(const TextTable& table, std::string_view summary);
/// For terminals: at most 80 columns, with bars.
std::string to_text(const Summary& summary, std::string_view title,
                    std::span<const TextTable> extra = {});
/// A table for terminals: as many columns as fit, the first cut before others are left out; as many
/// rows as asked for.
std::string table_text(const TextTable& table, std::size_t most_rows = 16);
/// `extra`: tables that come after the findings.
std::string to_markdown(const Summary& summary, std::string_view title, std::string_view command,
                        std::span<const TextTable> extra = {});
/// The summary as JSON: schema "sinew-report", version 1. Figures only.
std::string to_json(const Summary& summary);
/// Every table as a file of its own: name and text.
std::vector<std::pair<std::string, std::string>> to_csv(const Summary& summary);

extern const std::string_view kReportPage;    // web/report.html
extern const std::string_view kReportCharts;  // web/charts.min.js

}  // namespace sinew::report
