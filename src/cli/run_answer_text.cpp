#include "cli/run_answer_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "base/wrapped.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "report/run_json.hpp"
#include "report/run_words.hpp"

namespace sinew {
namespace {

using report::time_ms;

std::string seconds(double s) {
  if (s >= 1e4) return fmt::format("{:.0f} s", s);
  return s >= 100 ? fmt::format("{:.1f} s", s) : human_ns(s * 1e9);
}
std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }

std::string shortened(std::string text, std::size_t most) {
  if (text.size() > most) text = text.substr(0, most - 2) + "..";
  return text;
}

void print_steps(const RunAnswer& answer, const TrainingRun& run) {
  using enum Align;
  const bool bars = report::has_bounds(answer);
  std::vector<Table::Column> columns{{"workers", right}, {"step", right},    {"sync", right},
                                     {"x first", right}, {"exposed", right}, {"effic.", right}};
  if (run.steps > 0) columns.push_back({"run", right});
  columns.push_back({bars ? "expected" : "algorithm", bars ? right : left});
  Table table(std::move(columns));
  const double first = answer.asked.front().communication_ms;
  for (const auto& step : answer.asked) {
    std::vector<std::string> cells{
        std::to_string(step.workers),
        time_ms(step.step_ms),
        time_ms(step.communication_ms),
        first > 0 ? fmt::format("{:.3f}", step.communication_ms / first) : "-",
        time_ms(step.exposed_ms),
        percent(step.efficiency)};
    if (run.steps > 0) cells.push_back(seconds(step.run_s));
    cells.push_back(bars ? fmt::format("{} .. {}", time_ms(step.low_ms), time_ms(step.high_ms))
                         : shortened(step.algorithm, run.steps > 0 ? 16 : 26));
    table.add(std::move(cells));
  }
  fmt::print("{}\n", table.text());
}

void print_parts(const RunAnswer& answer) {
  using enum Align;
  Table table({{"workers", right},
               {"sent/worker", right},
               {"messages", right},
               {"alpha", right},
               {"beta", right},
               {"gamma", right},
               {"wait", right},
               {"best"},
               {"its step", right}});
  for (std::size_t i = 0; i < answer.asked.size(); ++i) {
    const auto& step = answer.asked[i];
    const auto& best = answer.schemes[i].front();
    const auto share = [](double part) {
      return part <= 0      ? std::string("-")
             : part < 0.005 ? "<1%"
                            : fmt::format("{:.0f}%", part * 100);
    };
    table.add({std::to_string(step.workers),
               human_bytes(static_cast<std::uint64_t>(step.bytes_per_worker)),
               fmt::format("{:.0f}", step.messages), share(step.alpha), share(step.beta),
               share(step.gamma), share(step.wait), best.scheme, time_ms(best.step_ms)});
  }
  fmt::print("{}\n", table.text());
}

void print_schemes(const RunAnswer& answer) {
  using enum Align;
  std::vector<Table::Column> columns{{"exposed, ms", left}};
  for (const auto& step : answer.asked) columns.push_back({std::to_string(step.workers), right});
  if (columns.size() > 7) return;  // the JSON has them all
  Table table(std::move(columns));
  for (const auto scheme : modelled_schemes()) {
    std::vector<std::string> cells{std::string(scheme)};
    for (const auto& steps : answer.schemes)
      for (const auto& step : steps)
        if (step.scheme == scheme)
          cells.push_back(step.exposed_ms >= 1e5 ? fmt::format("{:.3g}", step.exposed_ms)
                                                 : fmt::format("{:.2f}", step.exposed_ms));
    if (cells.size() > 1) table.add(std::move(cells));
  }
  fmt::print("{}\n", table.text());
}

void print_sentence(const std::string& text) {
  if (!text.empty()) fmt::print("{}\n", wrapped(text, 80));
}

}  // namespace

void print_run_text(const RunAnswer& answer) {
  const Paint paint(stdout);
  const auto& run = answer.run;
  fmt::print("{}\n", paint.bold(wrapped(report::run_text(run), 80)));
  print_steps(answer, run);
  print_parts(answer);
  print_schemes(answer);
  print_sentence(report::limit_text(answer));
  for (const auto& objection : answer.objections)
    fmt::print("{}\n",
               wrapped(fmt::format("Objection: {}: {}.", objection.claim, objection.reason), 80));
  print_sentence(report::measured_text(answer));
  fmt::print("{}\n", wrapped(fmt::format("Modelled, on {}. What a scheme, fewer synchronisations "
                                         "or a larger batch do to convergence is not.",
                                         answer.about_network),
                             80));
  if (!answer.no_effect.empty())
    fmt::print(
        "{}\n",
        wrapped(fmt::format("Without effect here: {}.", fmt::join(answer.no_effect, ", ")), 80));
  if (!answer.left_out.empty())
    fmt::print("{}\n", wrapped(fmt::format("Not tried, too long to simulate: {}.",
                                           fmt::join(answer.left_out, ", ")),
                               80));
}

void print_run_json(const RunAnswer& answer) {
  fmt::print("{}\n", report::run_json(answer).dump(1));
}

}  // namespace sinew
