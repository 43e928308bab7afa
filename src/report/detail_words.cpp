// Tables of what needs more than sums: phases, rates, compression, the model.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "report/words.hpp"

namespace sinew::report {
namespace {

std::string count(std::uint64_t value) { return fmt::format("{}", value); }
std::string bytes(double value) {
  return value < 1 ? "-" : human_bytes(static_cast<std::uint64_t>(value));
}
std::string rate(const Figure& figure) {
  return with_label(fmt::format("{:.3g} GB/s", figure.value / 1e9), figure.source);
}
std::string share(double part, double whole) { return whole > 0 ? percent(part / whole) : ""; }
template <class Optional>
std::string or_unknown(const Optional& value, std::string_view why) {
  return value ? seconds(value->value) : std::string(why);
}

}  // namespace

std::string with_label(std::string text, Source source) {
  return source == Source::measured ? text : fmt::format("{} ({})", text, name(source));
}

std::string method_text(const Summary& summary) {
  auto text = summary.source.empty()
                  ? std::string("Times and bytes were measured in the ranks themselves")
                  : fmt::format("Times and bytes are those that {} printed: imported from {}",
                                summary.source, summary.source);
  if (summary.times == Source::assumed)
    text = "Bytes are those of the traces; their times are assumptions, not measurements";
  if (!summary.made_by.empty()) text += fmt::format(" ({})", summary.made_by);
  text += fmt::format(
      ". {} on {}.",
      summary.ranks.size() == 1 ? "1 rank" : fmt::format("{} ranks", summary.ranks.size()),
      summary.hosts.empty() ? "hosts that are not known"
                            : fmt::format("{}", fmt::join(summary.hosts, ", ")));
  if (!summary.steps.iterations.empty())
    text += fmt::format(" {} iterations, {}.", summary.steps.iterations.size(),
                        summary.steps.marked ? "as the program marked them"
                                             : "found as what repeats in the calls of a rank");
  text +=
      " Sizes K/M/G are binary, MB and GB/s decimal. 'On the wire' is the least that a rank must "
      "send for its calls (a ring's bytes): modelled from measured sizes.";
  if (!summary.command.empty()) text += fmt::format(" They ran: {}", summary.command);
  return text;
}

TextTable split_table(const Summary& summary) {
  TextTable table{"Where the time went",
                  "Mean of a rank. Exposed communication is that during which nothing else was "
                  "done; hidden is no part of the sum.",
                  {"part", "time", "share"},
                  {}};
  const auto& split = summary.split;
  const auto add = [&](std::string_view part, double value, bool told, std::string_view why) {
    if (told)
      table.rows.push_back({std::string(part), with_label(seconds(value), summary.times),
                            share(value, split.elapsed_s)});
    else
      table.rows.push_back({std::string(part), fmt::format("not captured, because {}", why), ""});
  };
  if (split.elapsed_s <= 0) return table;
  const bool waits = summary.waited_share.has_value();
  add("compute", split.compute_s, summary.names_compute, "the traces do not name it");
  add("exposed communication", split.moving_s, !summary.routines.empty(),
      "no call that communicates was recorded");
  add("waiting for other ranks", split.waiting_s, waits,
      summary.ranks.size() < 2 ? "there is one rank" : "arrivals could not be compared");
  add("data loading", split.data_s, summary.names_data, "the traces do not name it");
  if (split.compress_s > 0) add("compression", split.compress_s, true, "");
  add(summary.names_compute ? "anything else" : "outside of communication", split.other_s(), true,
      "");
  if (split.hidden_s > 0) add("(hidden communication)", split.hidden_s, true, "");
  return table;
}

TextTable phase_table(const Summary& summary) {
  TextTable table{"Phases",
                  "An iteration on average, over ranks. On the wire: the least a rank must send, "
                  "modelled.",
                  {"phase", "iterations", "time", "+-", "median", "95 % below", "compute",
                   "exposed", "hidden", "on the wire", "communication"},
                  {}};
  for (const auto& phase : summary.steps.phases) {
    const auto& split = phase.split;
    table.rows.push_back(
        {fmt::format("{} (from {})", phase.name, phase.first), count(phase.iterations),
         with_label(seconds(split.elapsed_s), summary.times), seconds(phase.error_s),
         seconds(phase.median_s), seconds(phase.p95_s),
         summary.names_compute ? seconds(split.compute_s) : "not captured",
         seconds(split.exposed_s()), seconds(split.hidden_s), bytes(phase.wire_bytes),
         share(split.exposed_s() + split.hidden_s, split.elapsed_s)});
  }
  for (const auto& phase : summary.steps.phases)
    if (!phase.pattern.empty())
      table.about += fmt::format(" {}: {} an iteration.", phase.name, phase.pattern);
  return table;
}

TextTable iteration_table(const Summary& summary) {
  TextTable table{"Iterations",
                  "Neighbours are one row where there are many.",
                  {"iteration", "phase", "time", "compute", "moving", "waiting", "hidden", "data",
                   "on the wire"},
                  {}};
  for (const auto& one : summary.strip) {
    const auto& split = one.split;
    table.rows.push_back(
        {one.count == 1 ? count(one.number) : fmt::format("{}-{}", one.number, one.last),
         summary.steps.phases[one.phase].name, seconds(split.elapsed_s),
         summary.names_compute ? seconds(split.compute_s) : "", seconds(split.moving_s),
         seconds(split.waiting_s), seconds(split.hidden_s),
         summary.names_data ? seconds(split.data_s) : "", bytes(one.wire_bytes)});
  }
  return table;
}

TextTable bandwidth_table(const Summary& summary) {
  TextTable table{
      "Bandwidth",
      summary.link
          ? fmt::format("Of a rank, waiting left out. The link: {}. Over the whole run {} of it "
                        "are used.",
                        summary.link->about,
                        summary.link_use
                            ? with_label(percent(summary.link_use->value), summary.link_use->source)
                            : "an unknown share")
          : "Of a rank, waiting left out. No link was named: --link 12.5GB/s or --net net.toml "
            "set it beside.",
      {"routine", "size, from", "calls", "rate", "of the link"},
      {}};
  for (const auto& row : summary.bandwidth)
    table.rows.push_back({row.routine, human_bytes(row.from_bytes), count(row.calls),
                          rate(row.bytes_per_s), percent(row.share_of_link)});
  return table;
}

TextTable algorithm_table(const Summary& summary) {
  TextTable table{"Algorithms",
                  "Which algorithm served which size.",
                  {"routine", "size, from", "algorithm", "calls", "time", "mean"},
                  {}};
  for (const auto& row : summary.algorithms)
    table.rows.push_back({row.routine, row.from_bytes == 0 ? "0" : human_bytes(row.from_bytes),
                          row.algorithm, count(row.calls), seconds(row.seconds),
                          seconds(row.seconds / static_cast<double>(row.calls))});
  return table;
}

TextTable compression_table(const Summary& summary) {
  TextTable table{"Compression", "", {"", "dense", "sparse", "dense / sparse"}, {}};
  if (!summary.compression) return table;
  const auto& c = *summary.compression;
  table.about = fmt::format(
      "{}A whole gradient has {}. Bytes are the least that a rank must send an iteration, "
      "modelled.",
      c.scheme.empty() ? "" : c.scheme + ". ", bytes(c.dense_bytes));
  table.rows.push_back({"on the wire, a rank and iteration", bytes(c.dense_wire.value),
                        bytes(c.sparse_wire.value), fmt::format("{:.1f}", c.ratio())});
  const auto timed = [&](std::string_view what, const std::optional<Measured>& dense,
                         const std::optional<Measured>& sparse) {
    table.rows.push_back(
        {std::string(what), or_unknown(dense, "not measured"), or_unknown(sparse, "not measured"),
         dense && sparse && sparse->value > 0 ? fmt::format("{:.2f}", dense->value / sparse->value)
                                              : ""});
  };
  timed("iteration", c.dense_step_s, c.sparse_step_s);
  timed("exposed communication", c.dense_exposed_s, c.sparse_exposed_s);
  table.rows.push_back(
      {"selecting and encoding", "", or_unknown(c.compress_s, "not recorded"), ""});
  table.rows.push_back(
      {"density", "100.0 %",
       c.density ? with_label(fmt::format("{:.2f} %", 100 * c.density->value), c.density->source)
                 : "not known",
       ""});
  table.rows.push_back(
      {"density asked for", "",
       c.target_density ? fmt::format("{:.2f} %", 100 * c.target_density->value) : "not told", ""});
  table.rows.push_back(
      {"error against dense", "",
       c.relative_error ? fmt::format("{:.3g}", c.relative_error->value) : "not recorded", ""});
  return table;
}

TextTable model_table(const Summary& summary) {
  TextTable table{"Model and measurement",
                  "",
                  {"calls", "bytes", "measured", "used", "modelled", "best", "modelled best"},
                  {}};
  if (!summary.model) return table;
  table.about = fmt::format("The network: {}, {}.", summary.model->network,
                            summary.model->calibrated ? "calibrated" : "as stated");
  for (const auto& row : summary.model->rows)
    table.rows.push_back(
        {fmt::format("{} x {}", row.asked.calls, row.asked.routine), bytes(row.asked.bytes),
         with_label(seconds(row.asked.mean_s.value), summary.times), row.asked.algorithm,
         row.used_s.value > 0 ? seconds(row.used_s.value) : "", row.best,
         fmt::format("{} ({} to {})", seconds(row.best_s.value),
                     seconds(row.best_s.value * row.low), seconds(row.best_s.value * row.high))});
  return table;
}

TextTable scaling_table(const Summary& summary) {
  TextTable table{"On more ranks", "", {"ranks", "modelled", "between", "and", "algorithm"}, {}};
  if (!summary.model) return table;
  table.about = fmt::format(
      "{}, by the best algorithm of each rank count: modelled, on links like "
      "this one.",
      summary.model->scaled);
  for (const auto& point : summary.model->scaling)
    table.rows.push_back({fmt::format("{}", point.ranks), seconds(point.seconds.value),
                          seconds(point.low.value), seconds(point.high.value), point.algorithm});
  return table;
}

TextTable heat_table(const Summary& summary) {
  const auto& heat = summary.heat;
  TextTable table{
      heat.waiting ? "Waiting of each rank over time" : "Communication of each rank over time",
      fmt::format("Shares of cells of {}{}.", seconds(heat.cell_s),
                  heat.waiting ? "" : "; waiting is not known"),
      {"rank"},
      {}};
  const std::size_t cells = heat.share.empty() ? 0 : heat.share.front().size();
  for (std::size_t i = 0; i < cells; ++i)
    table.columns.push_back(seconds(static_cast<double>(i) * heat.cell_s));
  for (std::size_t r = 0; r < heat.share.size(); ++r) {
    auto& row = table.rows.emplace_back();
    row.push_back(fmt::format("{}", heat.ranks[r]));
    for (const auto value : heat.share[r]) row.push_back(fmt::format("{:.0f} %", 100 * value));
  }
  return table;
}

TextTable environment_table(const Summary& summary) {
  TextTable table{"Environment", "", {"what", "value"}, {}};
  for (const auto& [key, value] : summary.environment) table.rows.push_back({key, value});
  return table;
}

}  // namespace sinew::report
