#include "cli/demo_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/wrapped.hpp"
#include "cli/arguments.hpp"
#include "cli/table.hpp"
#include "model/network_file.hpp"
#include "model/predict.hpp"

namespace sinew {
namespace {

double number(const nlohmann::json& run, const char* key) { return run.value(key, 0.0); }
double comm(const nlohmann::json& run, const char* key) {
  return run.value("comm", nlohmann::json::object()).value(key, 0.0);
}
double steps(const nlohmann::json& run) {
  return std::max(1.0, number(run, "steps") - number(run, "first_step"));
}
double a_step_ms(const nlohmann::json& run, double seconds) { return 1e3 * seconds / steps(run); }

/// Bytes that a worker sends in a step.
double sent_a_step(const nlohmann::json& run) {
  return comm(run, "bytes_sent") / std::max(1.0, number(run, "workers")) / steps(run);
}

/// Milliseconds of the quickest allreduce in which a rank sends `sent` bytes: 2 (P-1)/P of its
/// length.
double predicted_ms(int ranks, double sent, const Network& network) {
  const Question question{.collective = Collective::allreduce,
                          .ranks = ranks,
                          .bytes = sent * ranks / (2.0 * (ranks - 1))};
  double best = 0;
  for (const auto* algorithm : algorithms_of(Collective::allreduce)) {
    if (!fits(*algorithm, question, network)) continue;
    const auto ms = static_cast<double>(predict(*algorithm, question, network).time) / 1e9;
    if (best == 0 || ms < best) best = ms;
  }
  return best;
}

// What a dense allreduce of the gradients sends, however many ranks there were when it was
// measured.
double dense_sent(const nlohmann::json& run, int ranks) {
  return 8.0 * number(run, "parameters") * (ranks - 1) / ranks;
}

using Row = std::vector<std::string>;

Row predicted_row(const PredictedStep& step) {
  const auto dense = step.compute_ms + step.first_ms, sparse = step.compute_ms + step.second_ms;
  return {std::to_string(step.workers), fmt::format("{:.1f}", step.compute_ms),
          fmt::format("{:.2f}", step.first_ms), fmt::format("{:.2f}", step.second_ms),
          fmt::format("{:.2f}x", dense / sparse)};
}

Row predicted_titles(const TrainComparison& c) {
  return {"workers", "compute, ms", c.first + ", ms", c.second + ", ms", "step is shorter by"};
}

std::string assumption(const TrainComparison& c) {
  return fmt::format(
      "Modelled: the library's schedules on {}; computing as measured here, bytes of {} as "
      "measured here, nothing hidden behind computing.",
      c.network, c.second);
}

std::string html_row(const Row& row, std::string_view cell) {
  std::string text = "<tr>";
  for (const auto& value : row) text += fmt::format("<{0}>{1}</{0}>", cell, value);
  return text + "</tr>\n";
}

}  // namespace

TrainComparison compare_runs(const nlohmann::json& dense, const nlohmann::json& sparse,
                             const Network& network) {
  TrainComparison result;
  result.first = "dense";
  result.second = "Ok-Topk";
  const auto row = [&](std::string name, auto of) {
    result.figures.push_back({std::move(name), of(dense), of(sparse)});
  };
  using Json = const nlohmann::json&;
  row("accuracy", [](Json r) { return fmt::format("{:.2f} %", 100 * number(r, "accuracy")); });
  row("loss", [](Json r) { return fmt::format("{:.4f}", number(r, "loss")); });
  row("steps", [](Json r) { return fmt::format("{:.0f}", number(r, "steps")); });
  row("seconds", [](Json r) { return fmt::format("{:.1f}", number(r, "seconds")); });
  row("samples/s", [](Json r) { return fmt::format("{:.0f}", number(r, "samples_per_s")); });
  row("compute, ms a step",
      [](Json r) { return fmt::format("{:.2f}", a_step_ms(r, number(r, "compute_s"))); });
  row("hidden communication, ms a step",
      [](Json r) { return fmt::format("{:.2f}", a_step_ms(r, comm(r, "hidden_s"))); });
  row("exposed communication, ms a step",
      [](Json r) { return fmt::format("{:.2f}", a_step_ms(r, comm(r, "exposed_s"))); });
  row("of communication, waiting, ms a step",
      [](Json r) { return fmt::format("{:.2f}", a_step_ms(r, comm(r, "waiting_s"))); });
  row("sent, KB a worker and step",
      [](Json r) { return fmt::format("{:.0f}", sent_a_step(r) / 1e3); });
  row("less than the gradients by",
      [](Json r) { return fmt::format("{:.1f}x", number(r, "compression_ratio")); });
  row("density", [](Json r) { return fmt::format("{:.4f}", number(r, "density_mean")); });
  result.verdict = fmt::format(
      "Ok-Topk sent {:.1f}x less than dense and reached {:.2f} % where dense reached {:.2f} %.",
      comm(dense, "bytes_sent") / std::max(1.0, comm(sparse, "bytes_sent")),
      100 * number(sparse, "accuracy"), 100 * number(dense, "accuracy"));
  result.network = describe(network);
  for (const int workers : {8, 16, 32, 64})
    result.predicted.push_back({workers, a_step_ms(dense, number(dense, "compute_s")),
                                predicted_ms(workers, dense_sent(dense, workers), network),
                                predicted_ms(workers, sent_a_step(sparse), network)});
  return result;
}

std::string to_text(const TrainComparison& c) {
  using enum Align;
  Table figures({{""}, {c.first, right}, {c.second, right}});
  for (const auto& figure : c.figures) figures.add({figure.name, figure.first, figure.second});
  std::vector<Table::Column> columns;
  for (const auto& title : predicted_titles(c)) columns.push_back({title, right});
  Table predicted(std::move(columns));
  for (const auto& step : c.predicted) predicted.add(predicted_row(step));
  return fmt::format("{}\n{}\n\nCommunication of larger groups:\n\n{}\n{}\n", figures.text(),
                     wrapped(c.verdict), predicted.text(), wrapped(assumption(c)));
}

std::string to_markdown(const TrainComparison& c) {
  auto text = fmt::format("# {} and {}\n\n{}\n\n| | {} | {} |\n|---|---:|---:|\n", c.first,
                          c.second, c.verdict, c.first, c.second);
  for (const auto& figure : c.figures)
    text += fmt::format("| {} | {} | {} |\n", figure.name, figure.first, figure.second);
  text += "\n## Larger groups\n\n";
  for (const auto& title : predicted_titles(c)) text += "| " + title + " ";
  text += "|\n|---:|---:|---:|---:|---:|\n";
  for (const auto& step : c.predicted) {
    for (const auto& cell : predicted_row(step)) text += "| " + cell + " ";
    text += "|\n";
  }
  return text + "\n" + assumption(c) +
         "\n\nEach run has a report of its own: `dense/report.html` and `oktopk/report.html`.\n";
}

std::string to_html(const TrainComparison& c) {
  std::string figures, predicted;
  for (const auto& figure : c.figures)
    figures += html_row({figure.name, figure.first, figure.second}, "td");
  for (const auto& step : c.predicted) predicted += html_row(predicted_row(step), "td");
  return fmt::format(
      R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{0} and {1}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
td, th {{ padding: .25rem .75rem; text-align: right; border-bottom: 1px solid #8886; }}
td:first-child, th:first-child {{ text-align: left; }}
body {{ background: #fff; color: #1b1f23; }}
a {{ color: #0550ae; }}
@media (prefers-color-scheme: dark) {{
body {{ background: #14171a; color: #e6e6e6; }}
a {{ color: #9ecbff; }}
}}
</style></head><body><main>
<h1>{0} and {1}</h1>
<p><strong>{2}</strong></p>
<div class="wide" tabindex="0"><table>
{3}{4}</table></div>
<h2>Larger groups</h2>
<div class="wide" tabindex="0"><table>
{5}{6}</table></div>
<p>{7}</p>
<p>Each run has a report of its own: <a href="dense/report.html">{0}</a>,
<a href="oktopk/report.html">{1}</a>.</p>
</main></body></html>
)",
      c.first, c.second, c.verdict, html_row({"figure", c.first, c.second}, "th"), figures,
      html_row(predicted_titles(c), "th"), predicted, assumption(c));
}

}  // namespace sinew
