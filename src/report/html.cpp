#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>

#include "report/report_page.hpp"
#include "report/run_words.hpp"
#include "report/words.hpp"

namespace sinew::report {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  return result;
}

}  // namespace

std::string table_html(const TextTable& table, std::string_view summary) {
  std::string text;
  if (!table.about.empty()) text += fmt::format("<p class=\"soft\">{}</p>\n", escaped(table.about));
  if (!summary.empty()) text += fmt::format("<details><summary>{}</summary>\n", escaped(summary));
  text += fmt::format(
      "<div class=\"wrap\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>\n<thead><tr>",
      escaped(table.title));
  for (const auto& column : table.columns)
    text += fmt::format("<th scope=\"col\">{}</th>", escaped(column));
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (const auto& value : row) text += fmt::format("<td>{}</td>", escaped(value));
    text += "</tr>\n";
  }
  text += "</tbody></table></div>\n";
  return summary.empty() ? text : text + "</details>\n";
}

namespace {

std::string findings_html(const Summary& summary) {
  if (summary.findings.empty()) return "<p>None: nothing in these figures asks for a change.</p>\n";
  std::string text;
  for (const auto& finding : summary.findings) {
    text += fmt::format(
        "<article class=\"finding\" id=\"{0}\"><h3>{1}</h3>\n<p class=\"badge\">{2}</p>\n",
        escaped(finding.id), escaped(finding.claim), name(finding.confidence));
    const auto list = [&](std::string_view name, const std::vector<std::string>& lines) {
      if (lines.empty()) return;
      text += fmt::format("<p class=\"soft\">{}</p>\n<ul>\n", name);
      for (const auto& line : lines) text += fmt::format("<li>{}</li>\n", escaped(line));
      text += "</ul>\n";
    };
    list("Because", finding.arithmetic);
    list("What to do", finding.advice);
    if (finding.benefit)
      text += fmt::format("<p>{}</p>\n", escaped(benefit_text(*finding.benefit)));
    if (!finding.command.empty())
      text += fmt::format("<pre tabindex=\"0\">{}</pre>\n", escaped(finding.command));
    if (!finding.chart.empty())
      text += fmt::format("<p class=\"chart-link\"><a href=\"#{}\">The chart</a></p>\n",
                          escaped(finding.chart));
    text += "</article>\n";
  }
  return text;
}

std::string sizes_html(const Summary& summary) {
  const auto routines = sized_routines(summary);
  if (routines.empty()) return "";
  std::string text = "<h2>Message sizes</h2>\n";
  for (std::size_t i = 0; i < routines.size(); ++i) {
    const auto table = size_table(*routines[i]);
    text += fmt::format(
        "<h3>{}</h3>\n<figure id=\"chart-calls-{}\"></figure>\n<figure "
        "id=\"chart-time-{}\"></figure>\n"
        "{}",
        escaped(table.title), i, i, table_html(table, "the most frequent sizes"));
  }
  return text;
}

std::string matrix_html(const Summary& summary) {
  if (summary.matrix.empty()) return "";
  const auto table = matrix_table(summary);
  return fmt::format("<h2>{}</h2>\n<figure id=\"chart-matrix\"></figure>\n{}", escaped(table.title),
                     table_html(table, "as a table"));
}

std::string notes_html(const Summary& summary) {
  if (summary.notes.empty()) return "";
  std::string text = "<h2>Notes</h2>\n<ul>\n";
  for (const auto& note : summary.notes) text += fmt::format("<li>{}</li>\n", escaped(note));
  return text + "</ul>\n";
}

// A chart and its table; nothing where there is nothing to show.
std::string chart_html(const TextTable& table, std::string_view id, std::string_view key = "") {
  if (table.rows.empty()) return "";
  return fmt::format("<h2 id=\"{0}-section\">{1}</h2>\n{2}<figure id=\"{0}\"></figure>\n{3}", id,
                     escaped(table.title), key, table_html(table, "as a table"));
}

std::string key_html(std::span<const std::string_view> parts) {
  std::string text = "<p class=\"key\" aria-hidden=\"true\">";
  for (const auto part : parts) text += fmt::format("<span><i class=\"{0}\"></i>{0}</span>", part);
  return text + "</p>\n";
}

std::string iterations_html(const Summary& summary) {
  if (summary.strip.empty()) return "";
  return "<h2>Iterations</h2>\n" + table_html(phase_table(summary), "") +
         fmt::format("{}<figure id=\"chart-iterations\"></figure>\n{}", key_html(kPartNames),
                     table_html(iteration_table(summary), "as a table"));
}

std::string lanes_html(const Summary& summary) {
  std::size_t marks = 0, merged = 0;
  for (const auto& lane : summary.lanes) {
    marks += lane.marks.size();
    merged += lane.merged;
  }
  if (marks == 0) return "";
  return fmt::format(
      "<h2>Timeline</h2>\n<p class=\"soft\">{}</p>\n{}<figure id=\"chart-lanes\"></figure>\n",
      merged == 0
          ? "Every recorded call."
          : fmt::format("Shown are {} stretches, into which {} were merged: each part keeps "
                        "its share. sinew report RUN --format perfetto has every call.",
                        marks, merged),
      key_html(kPartNames));
}

std::string more_workers_html(const Summary& summary) {
  if (!summary.more_workers) return "";
  std::string key = "<p class=\"key\" aria-hidden=\"true\">";
  for (const auto& part : run_parts())
    if (occurs(part, *summary.more_workers))
      key += fmt::format("<span><i class=\"{}\"></i>{}</span>", part.fill, part.label);
  if (has_bounds(*summary.more_workers))
    key += "<span><i class=\"bounds\"></i>the model's bounds</span>";
  if (summary.more_workers->run.measured.steps > 0)
    key += "<span><i class=\"seen\"></i>measured step</span>";
  key += "<span>%: share that computes</span>";
  return chart_html(more_workers_table(summary), "chart-workers", key + "</p>\n");
}

// The figures and which routines have charts. Nothing in it can end the element it stands in.
std::string data_json(const Summary& summary) {
  auto json = nlohmann::ordered_json::parse(to_json(summary));
  auto& charted = json["charted"] = nlohmann::ordered_json::array();
  for (const auto* routine : sized_routines(summary)) charted.push_back(routine->name);
  for (auto& routine : json["routines"]) routine.erase("sizes");  // bins are drawn
  json.erase("iterations");                                       // the strip is drawn
  if (summary.more_workers)                                       // of all schemes one is drawn
    for (auto& step : json["more_workers"]["results"]) step.erase("schemes");
  std::string result;
  for (const char c : json.dump()) result += c == '<' ? "\\u003c" : std::string(1, c);
  return result;
}

// Each mark is replaced where it stands in the page as it was made, so that no text can hold one.
std::string filled(std::string_view page,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string result;
  while (true) {
    const auto open = page.find("{{");
    if (open == std::string_view::npos) return result + std::string(page);
    const auto close = page.find("}}", open);
    const auto name = page.substr(open + 2, close - open - 2);
    result += page.substr(0, open);
    for (const auto& [key, value] : values)
      if (key == name) result += value;
    page.remove_prefix(close + 2);
  }
}

}  // namespace

std::string to_html(const Summary& summary, std::string_view title, std::string_view command,
                    const std::string& comparison) {
  std::string figures;
  for (const auto& [what, value] : headline(summary))
    figures += fmt::format("<li><strong>{}</strong> {}</li>", escaped(value), escaped(what));
  return filled(
      kReportPage,
      {{"title", escaped(title)},
       {"verdict", escaped(summary.verdict)},
       {"headline", figures},
       {"findings", findings_html(summary)},
       {"moving",
        summary.waited_share ? "moving data" : "communicating (waiting is not told apart)"},
       {"ranks", table_html(rank_table(summary), "as a table")},
       {"split", summary.split.elapsed_s > 0 ? table_html(split_table(summary), "") : ""},
       {"routines", table_html(routine_table(summary), "")},
       {"iterations", iterations_html(summary)},
       {"lanes", lanes_html(summary)},
       {"heat", chart_html(heat_table(summary), "chart-heat")},
       {"bandwidth", chart_html(bandwidth_table(summary), "chart-bandwidth")},
       {"algorithms", summary.algorithms.empty()
                          ? ""
                          : "<h2>Algorithms</h2>\n" + table_html(algorithm_table(summary), "")},
       {"model", chart_html(model_table(summary), "chart-model")},
       {"scaling", chart_html(scaling_table(summary), "chart-scaling")},
       {"workers", more_workers_html(summary)},
       {"compression", chart_html(compression_table(summary), "chart-compression")},
       {"environment",
        summary.environment.empty() ? "" : table_html(environment_table(summary), "environment")},
       {"comparison", comparison},
       {"sizes", sizes_html(summary)},
       {"matrix", matrix_html(summary)},
       {"notes", notes_html(summary)},
       {"method", escaped(method_text(summary))},
       {"command", escaped(command)},
       {"data", data_json(summary)},
       {"charts", std::string(kReportCharts)}});
}

}  // namespace sinew::report
