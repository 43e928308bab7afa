#include "cli/predict_trace.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "base/wrapped.hpp"
#include "cli/arguments.hpp"
#include "cli/networks.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "model/chakra.hpp"
#include "model/goal_program.hpp"
#include "model/network_file.hpp"
#include "report/run_words.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

bool is_goal(const std::string& path) { return path.ends_with(".goal"); }
using report::time_ms;

int predict_goal(const std::string& path, const Network& network, bool json) {
  const auto program = parse_goal(read_text(path), path);
  const auto outcome = simulate_goal(program, network);
  const double low = outcome.end_ps * network.error.low, high = outcome.end_ps * network.error.high;
  if (json) {
    const Json document{{"schema", "sinew-predict-goal"},
                        {"version", 1},
                        {"sinew", SINEW_VERSION},
                        {"network", network.name},
                        {"ranks", program.ranks.size()},
                        {"time_us", outcome.end_ps / 1e6},
                        {"low_us", low / 1e6},
                        {"high_us", high / 1e6},
                        {"messages", outcome.messages},
                        {"bytes", outcome.bytes},
                        {"bytes_per_rank", outcome.busiest_bytes},
                        {"calc_us", outcome.busiest_calc_ps / 1e6},
                        {"last_rank", outcome.last_rank}};
    fmt::print("{}\n", document.dump(1));
    return kFine;
  }
  fmt::print("{} ranks end after {}, rank {} last\n", program.ranks.size(),
             human_ns(outcome.end_ps / 1e3), outcome.last_rank);
  if (low != high)
    fmt::print("expected between {} and {}\n", human_ns(low / 1e3), human_ns(high / 1e3));
  fmt::print("{:.0f} messages, {} in all; a rank sends at most {} and computes at most {}\n",
             outcome.messages, human_bytes(static_cast<std::uint64_t>(outcome.bytes)),
             human_bytes(static_cast<std::uint64_t>(outcome.busiest_bytes)),
             human_ns(outcome.busiest_calc_ps / 1e3));
  fmt::print("{}\n", wrapped(fmt::format("Modelled, on {}.", describe(network)), 80));
  return kFine;
}

int predict_chakra(const std::string& path, const Network& network, const std::string& workers,
                   bool json) {
  const auto trace = parse_chakra(read_text(path), path);
  CostBook costs(network);
  using enum Align;
  Table table({{"workers", right},
               {"step", right},
               {"computes", right},
               {"communicates", right},
               {"exposed", right},
               {"efficient", right},
               {"algorithms"}});
  Json results = Json::array();
  for (const int count : parse_doubling_ranks(workers)) {
    const auto times = replay_chakra(trace, costs, count);
    const double efficiency = times.step_ms > 0 ? times.compute_ms / times.step_ms : 1;
    table.add({std::to_string(count), time_ms(times.step_ms), time_ms(times.compute_ms),
               time_ms(times.communication_ms), time_ms(times.exposed_ms),
               fmt::format("{:.1f}%", efficiency * 100), times.algorithms});
    results.push_back({{"workers", count},
                       {"step_us", times.step_ms * 1e3},
                       {"low_us", times.low_ms * 1e3},
                       {"high_us", times.high_ms * 1e3},
                       {"compute_us", times.compute_ms * 1e3},
                       {"communication_us", times.communication_ms * 1e3},
                       {"exposed_us", times.exposed_ms * 1e3},
                       {"efficiency", efficiency},
                       {"bytes_per_worker", times.bytes_per_worker},
                       {"algorithms", times.algorithms}});
  }
  if (json) {
    const Json document{{"schema", "sinew-predict-chakra"},
                        {"version", 1},
                        {"sinew", SINEW_VERSION},
                        {"network", network.name},
                        {"nodes", trace.nodes.size()},
                        {"results", std::move(results)},
                        {"notes", trace.notes}};
    fmt::print("{}\n", document.dump(1));
    return kFine;
  }
  fmt::print("{} nodes\n{}\n", trace.nodes.size(), table.text());
  for (const auto& note : trace.notes) fmt::print("{}\n", wrapped(note, 80));
  fmt::print("{}\n", wrapped(fmt::format("Modelled, on {}.", describe(network)), 80));
  return kFine;
}

}  // namespace

bool names_a_trace(const std::string& word) {
  return is_goal(word) || (word.ends_with(".json") && std::filesystem::exists(word));
}

int run_predict_trace(int argc, char** argv) {
  CLI::App app{
      "Predicts what a workload of another tool takes on a network: GOAL (.goal, what each rank "
      "sends, receives and computes) or a Chakra execution trace as JSON.",
      "sinew predict"};
  std::string path, net, workers = "8";
  bool json = false;
  app.add_option("trace", path, "FILE.goal, or a Chakra trace FILE.json")->required();
  app.add_option("--net", net, "the network: a model file, or alpha=5us,bw=25GB/s")->required();
  app.add_option("--workers,-p", workers, "Chakra: worker counts, e.g. 8..1024 (default 8)");
  app.add_flag("--json", json, "one JSON document");
  if (const auto status = parse(app, argc, argv)) return *status;
  const auto network = load_network(net);
  return is_goal(path) ? predict_goal(path, network, json)
                       : predict_chakra(path, network, workers, json);
}

}  // namespace sinew
