#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/report_page.hpp"
#include "report/run_json.hpp"

namespace sinew::report {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

template <class Optional>
Json value_or_null(const Optional& quantity) {
  return quantity ? Json(quantity->value) : Json();
}

Json json_of(const Figure& figure) {
  return {{"value", figure.value}, {"source", name(figure.source)}};
}

Json json_of(const Split& split) {
  return {{"elapsed_s", split.elapsed_s}, {"compute_s", split.compute_s},
          {"data_s", split.data_s},       {"compress_s", split.compress_s},
          {"moving_s", split.moving_s},   {"waiting_s", split.waiting_s},
          {"hidden_s", split.hidden_s},   {"other_s", split.other_s()}};
}

Json rows_of(const std::vector<SizeRow>& rows) {
  auto all = Json::array();
  for (const auto& row : rows)
    all.push_back({{"bytes", row.bytes},
                   {"calls", row.calls},
                   {"moved_bytes", row.moved},
                   {"seconds", row.seconds}});
  return all;
}

Json json_of(const RoutineSummary& routine) {
  const auto& spread = routine.spread;
  return {{"name", routine.name},
          {"routine", routine.routine},
          {"wire_bytes", {{"value", routine.wire_bytes}, {"source", "modelled"}}},
          {"reduction",
           routine.reduction ? Json{routine.reduction->first, routine.reduction->second} : Json()},
          {"calls", routine.calls},
          {"sent_bytes", routine.sent},
          {"received_bytes", routine.received},
          {"seconds", routine.seconds},
          {"share", routine.share},
          {"waited_share", or_null(routine.waited_share)},
          {"covered_share", or_null(routine.covered_share)},
          {"spread",
           {{"least", spread.least},
            {"mode", spread.mode},
            {"median", spread.median},
            {"mean", spread.mean},
            {"most", spread.most},
            {"distinct", spread.distinct}}},
          {"sizes", rows_of(routine.sizes)},
          {"bins", rows_of(routine.bins)}};
}

Json json_of(const RankSummary& rank) {
  return {{"rank", rank.rank},
          {"host", rank.host},
          {"complete", rank.complete},
          {"calls", rank.calls},
          {"sent_bytes", rank.sent},
          {"received_bytes", rank.received},
          {"elapsed_s", rank.elapsed_s},
          {"communication_s", rank.communication_s},
          {"waited_s", or_null(rank.waited_s)},
          {"came_last", rank.last},
          {"split", rank.split ? json_of(*rank.split) : Json()},
          {"moving_s", rank.moving_s()},
          {"outside_s", rank.other_s()}};
}

Json json_of(const Finding& finding) {
  auto evidence = Json::array();
  for (const auto& [name, value, unit] : finding.evidence)
    evidence.push_back({{"name", name}, {"value", value}, {"unit", unit}});
  return {{"id", finding.id},
          {"claim", finding.claim},
          {"arithmetic", finding.arithmetic},
          {"evidence", evidence},
          {"confidence", name(finding.confidence)},
          {"advice", finding.advice},
          {"benefit", finding.benefit ? Json{{"seconds", finding.benefit->seconds.value},
                                             {"low", finding.benefit->low.value},
                                             {"high", finding.benefit->high.value},
                                             {"source", "modelled"},
                                             {"how", finding.benefit->how}}
                                      : Json()},
          {"command", finding.command},
          {"chart", finding.chart},
          {"cost_s", finding.cost_s}};
}

Json json_of(const StepPhase& phase) {
  return {{"name", phase.name},
          {"first", phase.first},
          {"iterations", phase.iterations},
          {"split", json_of(phase.split)},
          {"error_s", phase.error_s},
          {"median_s", phase.median_s},
          {"p95_s", phase.p95_s},
          {"longest_s", phase.longest_s},
          {"wire_bytes", {{"value", phase.wire_bytes}, {"source", "modelled"}}},
          {"pattern", phase.pattern}};
}

Json json_of(const Compression& c) {
  return {{"scheme", c.scheme},
          {"dense_bytes", c.dense_bytes},
          {"dense_wire_bytes", json_of(Figure(c.dense_wire))},
          {"sparse_wire_bytes", json_of(Figure(c.sparse_wire))},
          {"ratio", {{"value", c.ratio()}, {"source", "modelled"}}},
          {"dense_iteration_s", value_or_null(c.dense_step_s)},
          {"sparse_iteration_s", value_or_null(c.sparse_step_s)},
          {"dense_exposed_s", value_or_null(c.dense_exposed_s)},
          {"sparse_exposed_s", value_or_null(c.sparse_exposed_s)},
          {"compress_s", value_or_null(c.compress_s)},
          {"target_density", value_or_null(c.target_density)},
          {"density", c.density ? json_of(*c.density) : Json()},
          {"density_from", c.density_from},
          {"relative_error", value_or_null(c.relative_error)}};
}

Json json_of(const ModelView& view) {
  Json json{{"network", view.network},
            {"calibrated", view.calibrated},
            {"left_out_error", view.left_out_error},
            {"source", "modelled"},
            {"scaled", view.scaled}};
  auto& link = json["link"] = Json::array();
  for (const auto& point : view.link)
    link.push_back({{"bytes", point.bytes}, {"seconds", point.seconds.value}});
  auto& rows = json["rows"] = Json::array();
  for (const auto& row : view.rows)
    rows.push_back({{"routine", row.asked.routine},
                    {"bytes", row.asked.bytes},
                    {"ranks", row.asked.ranks},
                    {"calls", row.asked.calls},
                    {"measured_s", row.asked.mean_s.value},
                    {"algorithm", row.asked.algorithm},
                    {"used_s", row.used_s.value},
                    {"best", row.best},
                    {"best_s", row.best_s.value},
                    {"low_s", row.best_s.value * row.low},
                    {"high_s", row.best_s.value * row.high}});
  auto& scaling = json["scaling"] = Json::array();
  for (const auto& point : view.scaling)
    scaling.push_back({{"ranks", point.ranks},
                       {"seconds", point.seconds.value},
                       {"low", point.low.value},
                       {"high", point.high.value},
                       {"algorithm", point.algorithm}});
  return json;
}

/// To a millionth of the run: no screen shows more.
double rounded(double seconds, double elapsed_s) {
  const auto step = std::pow(10, std::floor(std::log10(std::max(elapsed_s, 1e-9))) - 6);
  return std::round(seconds / step) * step;
}

void add_detail(Json& json, const Summary& summary) {
  json["names_compute"] = summary.names_compute;
  json["names_data"] = summary.names_data;
  json["split"] = summary.split.elapsed_s > 0 ? json_of(summary.split) : Json();
  json["iterations_marked"] = summary.steps.marked;
  auto& phases = json["phases"] = Json::array();
  for (const auto& phase : summary.steps.phases) phases.push_back(json_of(phase));
  auto& iterations = json["iterations"] = Json::array();
  for (const auto& one : summary.steps.iterations)
    iterations.push_back({{"number", one.number},
                          {"begin_s", one.begin_s},
                          {"phase", one.phase},
                          {"wire_bytes", one.wire_bytes},
                          {"split", json_of(one.split)}});
  auto& strip = json["strip"] = Json::array();
  for (const auto& cell : summary.strip)
    strip.push_back({{"number", cell.number},
                     {"last", cell.last},
                     {"phase", cell.phase},
                     {"wire_bytes", cell.wire_bytes},
                     {"split", json_of(cell.split)}});
  auto& lanes = json["lanes"] = Json::array();
  for (const auto& lane : summary.lanes) {
    auto marks = Json::array();
    for (const auto& [begin, end, part] : lane.marks)
      marks.push_back({rounded(begin, summary.elapsed_s), rounded(end, summary.elapsed_s),
                       kPartNames[static_cast<std::size_t>(part)]});
    lanes.push_back({{"rank", lane.rank}, {"merged", lane.merged}, {"marks", std::move(marks)}});
  }
  auto heat = summary.heat.share;
  for (auto& row : heat)
    for (auto& value : row) value = std::round(value * 1e4) / 1e4;
  json["heat"] = {{"cell_s", summary.heat.cell_s},
                  {"what", summary.heat.waiting ? "waiting" : "communication"},
                  {"ranks", summary.heat.ranks},
                  {"share", heat}};
  auto& algorithms = json["algorithms"] = Json::array();
  for (const auto& row : summary.algorithms)
    algorithms.push_back({{"routine", row.routine},
                          {"from_bytes", row.from_bytes},
                          {"algorithm", row.algorithm},
                          {"calls", row.calls},
                          {"seconds", row.seconds}});
  json["link"] = summary.link ? Json{{"bytes_per_s", json_of(summary.link->bytes_per_s)},
                                     {"about", summary.link->about}}
                              : Json();
  json["link_use"] = summary.link_use ? json_of(*summary.link_use) : Json();
  auto& bandwidth = json["bandwidth"] = Json::array();
  for (const auto& row : summary.bandwidth)
    bandwidth.push_back({{"routine", row.routine},
                         {"from_bytes", row.from_bytes},
                         {"calls", row.calls},
                         {"bytes_per_s", json_of(row.bytes_per_s)},
                         {"share_of_link", or_null(row.share_of_link)}});
  json["compression"] = summary.compression ? json_of(*summary.compression) : Json();
  json["imbalance"] = summary.imbalance ? Json{{"mean_busy_s", summary.imbalance->mean_busy_s},
                                               {"most_busy_s", summary.imbalance->most_busy_s},
                                               {"busiest", summary.imbalance->busiest},
                                               {"compared", summary.imbalance->compared},
                                               {"last_rank", summary.imbalance->last_rank},
                                               {"last", summary.imbalance->last}}
                                        : Json();
  json["model"] = summary.model ? json_of(*summary.model) : Json();
  json["more_workers"] = summary.more_workers ? run_json(*summary.more_workers) : Json();
  auto& environment = json["environment"] = Json::object();
  for (const auto& [key, value] : summary.environment) environment[key] = value;
}

}  // namespace

std::string to_json(const Summary& summary) {
  Json json{{"schema", "sinew-report"},
            {"version", 1},
            {"source", summary.source},
            {"command", summary.command},
            {"made_by", summary.made_by},
            {"hosts", summary.hosts},
            {"verdict", summary.verdict},
            {"elapsed_s", summary.elapsed_s},
            {"times", name(summary.times)},
            {"communication_share", summary.communication_share},
            {"waited_share", or_null(summary.waited_share)},
            {"sent_bytes", summary.sent},
            {"received_bytes", summary.received},
            {"given_bytes", summary.given},
            {"calls", summary.calls}};
  auto& findings = json["findings"] = Json::array();
  for (const auto& finding : summary.findings) findings.push_back(json_of(finding));
  auto& routines = json["routines"] = Json::array();
  for (const auto& routine : summary.routines) routines.push_back(json_of(routine));
  auto& ranks = json["ranks"] = Json::array();
  for (const auto& rank : summary.ranks) ranks.push_back(json_of(rank));
  add_detail(json, summary);
  json["matrix"] = {{"ranks", summary.matrix.ranks}, {"sent_bytes", summary.matrix.sent}};
  json["notes"] = summary.notes;
  // Names come from programs and other tools: whatever is no UTF-8 in them is replaced.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sinew::report
