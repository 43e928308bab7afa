#include <nlohmann/json.hpp>

#include "report/report_page.hpp"

namespace sinew::report {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

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
          {"confidence", finding.confidence == Confidence::measured ? "measured" : "inferred"},
          {"advice", finding.advice},
          {"command", finding.command}};
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
  json["matrix"] = {{"ranks", summary.matrix.ranks}, {"sent_bytes", summary.matrix.sent}};
  json["notes"] = summary.notes;
  // Names come from programs and other tools: whatever is no UTF-8 in them is replaced.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sinew::report
