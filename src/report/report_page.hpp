// The report as pages for people: one HTML file that needs nothing else, or Markdown. Both print a
// Summary and calculate nothing.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/summary.hpp"

namespace sinew::report {

/// `command` is how to make it again.
std::string to_html(const Summary& summary, std::string_view title, std::string_view command);
std::string to_markdown(const Summary& summary, std::string_view title, std::string_view command);
/// The summary as JSON: schema "sinew-report", version 1. Figures only.
std::string to_json(const Summary& summary);
/// Every table as a file of its own: name and text.
std::vector<std::pair<std::string, std::string>> to_csv(const Summary& summary);

extern const std::string_view kReportPage;    // web/report.html
extern const std::string_view kReportCharts;  // web/charts.min.js

}  // namespace sinew::report
