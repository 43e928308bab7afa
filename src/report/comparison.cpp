#include "report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew::report {
namespace {

struct Samples {
  std::vector<double> values;
  Source source = Source::measured;
};

/// A figure of a run, or several samples of it (its iterations).
struct Measure {
  std::string what, unit;
  bool by_iteration = false;
  Source source = Source::measured;
  std::function<std::vector<double>(const Summary&)> of;
};

std::vector<double> one(double value) { return {value}; }

double wire_of(const Summary& summary) {
  double sum = 0;
  for (const auto& routine : summary.routines) sum += routine.wire_bytes;
  return summary.ranks.empty() ? 0 : sum / static_cast<double>(summary.ranks.size());
}

double waited_of(const Summary& summary) {
  double sum = 0;
  for (const auto& rank : summary.ranks) sum += rank.waited_s.value_or(0);
  return summary.ranks.empty() ? 0 : sum / static_cast<double>(summary.ranks.size());
}

double communication_of(const Summary& summary) {
  double sum = 0;
  for (const auto& rank : summary.ranks) sum += rank.communication_s;
  return summary.ranks.empty() ? 0 : sum / static_cast<double>(summary.ranks.size());
}

std::vector<double> iterations_of(const Summary& summary, double Split::*field) {
  std::vector<double> values;
  for (const auto& iteration : summary.steps.iterations) values.push_back(iteration.split.*field);
  return values;
}

std::vector<Measure> measures() {
  return {
      {"elapsed", "s", false, Source::measured, [](const Summary& s) { return one(s.elapsed_s); }},
      {"iteration", "s", true, Source::measured,
       [](const Summary& s) { return iterations_of(s, &Split::elapsed_s); }},
      {"iteration, computing", "s", true, Source::measured,
       [](const Summary& s) {
         return s.names_compute ? iterations_of(s, &Split::compute_s) : std::vector<double>{};
       }},
      {"communicating", "s", false, Source::measured,
       [](const Summary& s) { return one(communication_of(s)); }},
      {"waiting", "s", false, Source::measured,
       [](const Summary& s) { return s.waited_share ? one(waited_of(s)) : std::vector<double>{}; }},
      {"communication share", "share", false, Source::measured,
       [](const Summary& s) { return one(s.communication_share); }},
      {"calls", "", false, Source::measured,
       [](const Summary& s) {
         return one(static_cast<double>(s.calls) /
                    static_cast<double>(std::max<std::size_t>(s.ranks.size(), 1)));
       }},
      {"on the wire", "bytes", false, Source::modelled,
       [](const Summary& s) { return one(wire_of(s)); }},
  };
}

/// Of several runs each gives one sample, its mean; of one run its iterations are the samples.
Samples samples_of(const Side& side, const Measure& measure) {
  Samples samples{{}, measure.source};
  for (const auto& run : side.runs) {
    const auto values = measure.of(run);
    if (values.empty()) return {{}, measure.source};
    if (side.runs.size() == 1)
      samples.values = values;
    else {
      double mean = 0;
      for (const auto value : values) mean += value / static_cast<double>(values.size());
      samples.values.push_back(mean);
    }
  }
  if (measure.source == Source::measured && !side.runs.empty())
    samples.source = side.runs.front().times;
  return samples;
}

struct Statistics {
  double mean = 0, variance = 0, error = 0;
};

Statistics statistics_of(const std::vector<double>& values) {
  std::vector<Measured> quantities;
  for (const auto value : values) quantities.push_back({value});
  const auto mean = mean_of<Source::measured>(quantities);
  Statistics result{mean.mean.value, 0, mean.error.value};
  for (const auto value : values) result.variance += std::pow(value - result.mean, 2);
  if (values.size() > 1) result.variance /= static_cast<double>(values.size() - 1);
  return result;
}

/// Welch's test at 95 %.
Verdict verdict_of(const std::vector<double>& before, const std::vector<double>& after) {
  if (before.size() < 2 || after.size() < 2) return Verdict::unknown;
  const auto a = statistics_of(before), b = statistics_of(after);
  const auto n = static_cast<double>(before.size()), m = static_cast<double>(after.size());
  const auto va = a.variance / n, vb = b.variance / m;
  if (va + vb <= 0)
    return a.mean == b.mean ? Verdict::same : b.mean < a.mean ? Verdict::better : Verdict::worse;
  const auto freedom = (va + vb) * (va + vb) / (va * va / (n - 1) + vb * vb / (m - 1));
  const auto t = std::abs(a.mean - b.mean) / std::sqrt(va + vb);
  if (t < student_t95(std::max<std::size_t>(1, static_cast<std::size_t>(freedom))))
    return Verdict::same;
  return b.mean < a.mean ? Verdict::better : Verdict::worse;
}

Figure figure(double value, Source source) {
  if (source == Source::measured) return Measured{value};
  if (source == Source::modelled) return Modelled{value};
  return Assumed{value};
}

void check(const Side& side) {
  for (const auto& run : side.runs)
    if (run.times != side.runs.front().times)
      throw Error(Errc::invalid_argument,
                  fmt::format("{}: some of these runs were measured and some assumed; they have no "
                              "mean",
                              side.name));
}

std::string number(double value, std::string_view unit) {
  if (unit == "s") return seconds(value);
  if (unit == "bytes") return human_bytes(static_cast<std::uint64_t>(value));
  if (unit == "share") return percent(value);
  return fmt::format("{:.6g}", value);
}

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::better:
      return "better";
    case Verdict::worse:
      return "worse";
    case Verdict::same:
      return "within chance";
    default:
      return "not known";
  }
}

void note_differences(Comparison& comparison, const Side& before, const Side& after) {
  const auto& a = before.runs.front();
  const auto& b = after.runs.front();
  if (a.ranks.size() != b.ranks.size())
    comparison.notes.push_back(
        fmt::format("{} ranks before and {} after: totals are not of the same work", a.ranks.size(),
                    b.ranks.size()));
  if (a.steps.iterations.size() != b.steps.iterations.size())
    comparison.notes.push_back(
        fmt::format("{} iterations before and {} after: compare iterations, "
                    "not totals",
                    a.steps.iterations.size(), b.steps.iterations.size()));
  if (a.command != b.command && !a.command.empty() && !b.command.empty())
    comparison.notes.push_back(
        fmt::format("they ran different commands: {} and {}", a.command, b.command));
  if (a.times != b.times)
    comparison.notes.push_back(
        fmt::format("times are {} before and {} after: their ratio is no "
                    "measurement",
                    name(a.times), name(b.times)));
}

}  // namespace

std::string configuration_of(const trace::Profile& profile) {
  std::string text = fmt::format("{} ranks", profile.ranks.size());
  if (profile.ranks.empty()) return text;
  const auto& first = profile.ranks.front();
  text += ", " + first.command;
  for (const auto* const key : {"mpi", "transport", "scheme", "density", "model", "batch"})
    if (const auto found = first.info.find(key); found != first.info.end())
      text += fmt::format(", {}={}", key, found->second);
  return text;
}

Comparison compare(const Side& before, const Side& after) {
  check(before);
  check(after);
  Comparison comparison{before.name, after.name, {}, {}};
  if (before.runs.empty() || after.runs.empty()) return comparison;
  for (const auto& measure : measures()) {
    const auto a = samples_of(before, measure), b = samples_of(after, measure);
    if (a.values.empty() || b.values.empty()) continue;
    const auto sa = statistics_of(a.values), sb = statistics_of(b.values);
    comparison.rows.push_back({measure.what, measure.unit, figure(sa.mean, a.source),
                               figure(sb.mean, b.source), sa.error, sb.error, a.values.size(),
                               b.values.size(), verdict_of(a.values, b.values)});
  }
  note_differences(comparison, before, after);
  return comparison;
}

std::vector<const ComparisonRow*> worse_than(const Comparison& comparison, double limit) {
  std::vector<const ComparisonRow*> rows;
  // Totals mean something only for the same work, which iterations tell; without them all there is.
  const bool iterations = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                      [](const auto& row) { return row.what == "iteration"; });
  for (const auto& row : comparison.rows) {
    const bool time = row.what == (iterations ? "iteration" : "elapsed");
    const bool bytes = row.unit == "bytes";
    if ((time || bytes) && row.before.value > 0 && row.ratio() > 1 + limit &&
        row.verdict != Verdict::same && row.verdict != Verdict::better)
      rows.push_back(&row);
  }
  return rows;
}

TextTable comparison_table(const Comparison& comparison) {
  TextTable table{"Before and after",
                  fmt::format("Before: {}. After: {}. Of a rank on average. Ratios are after / "
                              "before; +- is 95 % of the "
                              "mean. Significance by Welch's test over repeats, or over iterations "
                              "where there is one run each.",
                              comparison.before, comparison.after),
                  {"what", "before", "+-", "after", "+-", "ratio", "significance"},
                  {}};
  for (const auto& row : comparison.rows)
    table.rows.push_back({row.what,
                          with_label(number(row.before.value, row.unit), row.before.source),
                          row.before_error > 0 ? number(row.before_error, row.unit) : "",
                          with_label(number(row.after.value, row.unit), row.after.source),
                          row.after_error > 0 ? number(row.after_error, row.unit) : "",
                          row.before.value > 0 ? fmt::format("{:.3f}", row.ratio()) : "",
                          std::string(word(row.verdict))});
  return table;
}

TextTable repeats_table(const Side& side) {
  check(side);
  TextTable table{"Repeats",
                  fmt::format("{}: {} runs of one configuration. +- is 95 % of the mean.",
                              side.name, side.runs.size()),
                  {"what", "mean", "+-", "least", "most"},
                  {}};
  for (const auto& measure : measures()) {
    const auto samples = samples_of(side, measure);
    if (samples.values.empty()) continue;
    const auto statistics = statistics_of(samples.values);
    const auto [least, most] = std::minmax_element(samples.values.begin(), samples.values.end());
    table.rows.push_back(
        {measure.what, with_label(number(statistics.mean, measure.unit), samples.source),
         samples.values.size() > 1 ? number(statistics.error, measure.unit) : "one sample",
         number(*least, measure.unit), number(*most, measure.unit)});
  }
  return table;
}

std::string to_json(const Comparison& comparison) {
  nlohmann::ordered_json json{{"schema", "sinew-comparison"},
                              {"version", 1},
                              {"before", comparison.before},
                              {"after", comparison.after}};
  auto& rows = json["rows"] = nlohmann::ordered_json::array();
  for (const auto& row : comparison.rows)
    rows.push_back({{"what", row.what},
                    {"unit", row.unit},
                    {"before", row.before.value},
                    {"before_source", name(row.before.source)},
                    {"before_error", row.before_error},
                    {"before_samples", row.before_samples},
                    {"after", row.after.value},
                    {"after_source", name(row.after.source)},
                    {"after_error", row.after_error},
                    {"after_samples", row.after_samples},
                    {"ratio", row.ratio()},
                    {"significance", word(row.verdict)}});
  json["notes"] = comparison.notes;
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace sinew::report
