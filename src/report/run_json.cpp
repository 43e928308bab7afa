#include "report/run_json.hpp"

#include <nlohmann/json.hpp>

namespace sinew::report {
namespace {

using Json = nlohmann::ordered_json;

Json step_json(const StepPrediction& step) {
  return {
      {"workers", step.workers},
      {"scheme", step.scheme},
      {"algorithm", step.algorithm},
      {"step_us", step.step_ms * 1e3},
      {"low_us", step.low_ms * 1e3},
      {"high_us", step.high_ms * 1e3},
      {"compute_us", step.compute_ms * 1e3},
      {"straggling_us", step.straggling_ms * 1e3},
      {"select_us", step.select_ms * 1e3},
      {"slowed_us", step.slowed_ms * 1e3},
      {"communication_us", step.communication_ms * 1e3},
      {"exposed_us", step.exposed_ms * 1e3},
      {"efficiency", step.efficiency},
      {"bytes_per_worker", step.bytes_per_worker},
      {"messages", step.messages},
      {"share",
       {{"alpha", step.alpha}, {"beta", step.beta}, {"gamma", step.gamma}, {"wait", step.wait}}},
      {"dense_lower_bound_us", step.lower_bound_ms * 1e3},
      {"run_s", step.run_s}};
}

}  // namespace

nlohmann::ordered_json run_json(const RunAnswer& answer) {
  const auto& run = answer.run;
  Json inputs{{"name", run.name},
              {"source", answer.source},
              {"pattern", run.pattern},
              {"scheme", run.scheme},
              {"gradient_bytes", run.gradient_bytes()},
              {"buckets", run.buckets.size()}};
  for (const auto& setting : run_settings()) inputs[std::string(setting.key)] = run.*setting.value;
  Json results = Json::array();
  for (std::size_t i = 0; i < answer.asked.size(); ++i) {
    auto row = step_json(answer.asked[i]);
    row["best_scheme"] = answer.schemes[i].front().scheme;
    row["schemes"] = Json::array();
    for (const auto& step : answer.schemes[i]) row["schemes"].push_back(step_json(step));
    row["no_effect"] = answer.no_effect;
    results.push_back(std::move(row));
  }
  Json objections = Json::array();
  for (const auto& objection : answer.objections)
    objections.push_back({{"id", objection.id},
                          {"claim", objection.claim},
                          {"reason", objection.reason},
                          {"stated", objection.stated},
                          {"modelled", objection.modelled},
                          {"unit", objection.unit}});
  Json document{{"schema", "sinew-predict-run"}, {"version", 1},
                {"sinew", SINEW_VERSION},        {"source", "modelled"},
                {"network", answer.network},     {"run", std::move(inputs)},
                {"results", std::move(results)}, {"objections", std::move(objections)},
                {"left_out", answer.left_out}};
  if (run.measured.steps > 0)
    document["measured"] = {{"source", "measured"},
                            {"workers", run.workers},
                            {"steps", run.measured.steps},
                            {"step_us", run.measured.step_ms * 1e3},
                            {"exposed_us", run.measured.exposed_ms * 1e3},
                            {"hidden_us", run.measured.hidden_ms * 1e3},
                            {"bytes_per_worker", run.measured.bytes_per_worker}};
  if (answer.limit_known)
    document["half_efficient_workers"] =
        answer.half_efficient ? Json(*answer.half_efficient) : Json(nullptr);
  return document;
}

}  // namespace sinew::report
