// `sinew predict`: what a collective would take on a network, by simulating its schedules.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/arguments.hpp"
#include "cli/networks.hpp"
#include "cli/output.hpp"
#include "cli/predict_run.hpp"
#include "cli/predict_trace.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "model/network_file.hpp"
#include "model/predict.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

struct PredictAsked {
  std::string collective, algo = "all", ranks = "8", bytes = "1M", net, nodes, transport;
  std::vector<std::string> settings;
  int root = 0, samples = 20;
  std::uint32_t segments = 0;
};

// One rank count and one size: what every algorithm that fits would take, fastest first.
struct Point {
  int ranks;
  std::uint64_t bytes;
  std::vector<Prediction> answers;
};

std::vector<const Algorithm*> asked_algorithms(Collective collective, const std::string& algo) {
  if (algo == "all") return algorithms_of(collective);
  std::vector<const Algorithm*> rows;
  for (const auto word : split(algo, ',')) rows.push_back(&find_algorithm(collective, word));
  return rows;
}

void check_size(const PredictAsked& asked, int ranks, const std::vector<int>& node_of) {
  if (!node_of.empty() && static_cast<int>(node_of.size()) != ranks)
    throw Error(Errc::invalid_argument,
                fmt::format("the node map '{}' holds {} ranks, but -p says {}", asked.nodes,
                            node_of.size(), ranks));
  if (asked.root < 0 || asked.root >= ranks)
    throw Error(Errc::invalid_argument,
                fmt::format("root {} is not a rank of {}", asked.root, ranks));
}

void check_network(const Network& network, const PredictAsked& asked) {
  const auto& from = network.provenance;
  if (!asked.transport.empty() && from.transport != asked.transport)
    throw Error(Errc::invalid_argument,
                fmt::format("{}: {}; `sinew calibrate --transport {} -o FILE` makes a model of it",
                            from.where.empty() ? asked.net : from.where,
                            from.transport.empty()
                                ? "nothing of this network was measured"
                                : fmt::format("this network was measured over {}, not {}",
                                              from.transport, asked.transport),
                            asked.transport));
  if (!asked.nodes.empty() && !network.topology.levels.empty())
    throw Error(
        Errc::invalid_argument,
        fmt::format("{}: the network has levels, which say who shares a node: leave --nodes "
                    "out, or change them by --set level.{}.size=N",
                    network.topology.where, network.topology.levels.front().name));
}

Point ask(const PredictAsked& asked, Collective collective, int ranks, std::uint64_t bytes,
          const Network& network, ProgressLine& progress) {
  Question question{.collective = collective,
                    .ranks = ranks,
                    .bytes = static_cast<double>(bytes),
                    .root = asked.root,
                    .segments = asked.segments,
                    .node_of = parse_nodes(asked.nodes),
                    .samples = asked.samples};
  check_size(asked, ranks, question.node_of);
  Point point{ranks, bytes, {}};
  for (const auto* algorithm : asked_algorithms(collective, asked.algo)) {
    if (!fits(*algorithm, question, network)) continue;
    progress.show(fmt::format("{} {} on {} ranks", name(collective), algorithm->name, ranks));
    point.answers.push_back(predict(*algorithm, question, network));
  }
  std::stable_sort(point.answers.begin(), point.answers.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return point;
}

std::vector<std::string> warnings_of(const std::vector<Point>& points) {
  std::vector<std::string> all;
  for (const auto& point : points)
    for (const auto& answer : point.answers)
      for (const auto& warning : answer.warnings)
        if (std::find(all.begin(), all.end(), warning) == all.end()) all.push_back(warning);
  return all;
}

bool is_corrected(const std::vector<Point>& points) {
  return std::any_of(points.begin(), points.end(), [](const Point& point) {
    return std::any_of(point.answers.begin(), point.answers.end(),
                       [](const Prediction& answer) { return answer.correction != 1; });
  });
}

Json answer_json(Collective collective, const Prediction& answer) {
  const auto us = [](double ps) { return ps / 1e6; };
  return {{"collective", name(collective)},
          {"algorithm", answer.algorithm->name},
          {"ranks", answer.ranks},
          {"bytes", static_cast<std::uint64_t>(answer.bytes)},
          {"time_us", us(static_cast<double>(answer.time))},
          {"low_us", us(answer.low)},
          {"high_us", us(answer.high)},
          {"bytes_per_rank", answer.bytes_per_rank},
          {"messages", answer.messages},
          {"share",
           {{"alpha", answer.alpha},
            {"beta", answer.beta},
            {"gamma", answer.gamma},
            {"wait", answer.wait}}},
          {"lower_bound_us", us(answer.lower_bound)},
          {"ratio_to_bound", answer.ratio_to_bound()},
          {"no_effect", answer.no_effect}};
}

void print_json(Collective collective, const std::vector<Point>& points, const Network& network) {
  Json results = Json::array();
  for (const auto& point : points)
    for (const auto& answer : point.answers) results.push_back(answer_json(collective, answer));
  const Json document{{"schema", "sinew-predict"},
                      {"version", 1},
                      {"sinew", SINEW_VERSION},
                      {"network", network.name},
                      {"corrected", is_corrected(points)},
                      {"warnings", warnings_of(points)},
                      {"results", std::move(results)}};
  fmt::print("{}\n", document.dump(1));
}

// "22/78/0/0": percents that need not be read one by one.
std::string shares(const Prediction& answer) {
  return fmt::format("{:.0f}/{:.0f}/{:.0f}/{:.0f}", answer.alpha * 100, answer.beta * 100,
                     answer.gamma * 100, answer.wait * 100);
}

std::string short_count(std::uint64_t count) {
  return count < 100'000 ? std::to_string(count) : short_number(static_cast<double>(count), "");
}

void print_point(Collective collective, const Point& point, const Paint& paint, bool bars) {
  fmt::print("{}\n", paint.bold(fmt::format("{} of {}, {} ranks", name(collective),
                                            human_bytes(point.bytes), point.ranks)));
  using enum Align;
  std::vector<Table::Column> columns{{"algorithm"}, {"time", right}};
  columns.push_back({bars ? "expected" : "x best", right});
  for (const std::string_view title : {"bound", "bytes", "msgs", "a/b/g/w %"})
    columns.push_back({std::string(title), right});
  Table table(std::move(columns));
  const auto best = static_cast<double>(point.answers.front().time);
  for (const auto& answer : point.answers) {
    const auto time = static_cast<double>(answer.time);
    table.add({std::string(answer.algorithm->name), short_time(time),
               bars ? short_range(answer.low, answer.high)
                    : fmt::format("{:.2f}", best > 0 ? time / best : 1),
               fmt::format("{:.2f}", answer.ratio_to_bound()),
               short_number(answer.bytes_per_rank, "B"), short_count(answer.messages),
               shares(answer)});
  }
  fmt::print("{}\n", table.text());
}

// What nothing of the answer depends on, so that nobody turns a knob that is not connected.
std::set<std::string> idle_inputs(const std::vector<Point>& points) {
  std::set<std::string> common;
  bool first = true;
  for (const auto& point : points)
    for (const auto& answer : point.answers) {
      const std::set<std::string> mine(answer.no_effect.begin(), answer.no_effect.end());
      if (first) common = mine;
      first = false;
      std::erase_if(common, [&](const std::string& input) { return !mine.contains(input); });
    }
  return common;
}

void print_scaling(const std::vector<Point>& points) {
  using enum Align;
  Table table({{"ranks", right}, {"bytes", right}, {"best"}, {"time", right}, {"x first", right}});
  const auto first = static_cast<double>(points.front().answers.front().time);
  for (const auto& point : points) {
    const auto& best = point.answers.front();
    const auto time = static_cast<double>(best.time);
    table.add({std::to_string(point.ranks), human_bytes(point.bytes),
               std::string(best.algorithm->name), human_ns(time / 1e3),
               first > 0 ? fmt::format("{:.3f}", time / first) : "-"});
  }
  fmt::print("The best of each:\n{}\n", table.text());
}

void print_text(Collective collective, const std::vector<Point>& points, const Network& network) {
  const Paint paint(stdout);
  const bool bars = std::any_of(points.begin(), points.end(), [](const Point& point) {
    return point.answers.front().low != point.answers.front().high;
  });
  for (const auto& point : points) print_point(collective, point, paint, bars);
  if (points.size() > 1) print_scaling(points);
  fmt::print("{}\n", wrapped(fmt::format("Modelled, on {}. bound: times what nothing can beat. "
                                         "bytes: sent or read by the busiest rank. a/b/g/w: alpha, "
                                         "beta, gamma and waiting on the longest chain.",
                                         describe(network)),
                             79));
  if (is_corrected(points))
    fmt::print("{}\n", wrapped(fmt::format("Corrected by what whole calls of {} ranks took when it "
                                           "was calibrated.",
                                           network.provenance.ranks),
                               79));
  if (const auto idle = idle_inputs(points); !idle.empty())
    fmt::print("{}\n", wrapped(fmt::format("Without effect here: {}.", fmt::join(idle, ", ")), 79));
}

// "allreduce", wherever it stands.
bool names_a_collective(std::string_view word) {
  return std::any_of(algorithms().begin(), algorithms().end(),
                     [&](const Algorithm& row) { return name(row.collective) == word; });
}

}  // namespace

int run_predict(int argc, char** argv) {
  if (argc > 1 && names_a_trace(argv[1])) return run_predict_trace(argc, argv);
  if (std::any_of(argv + 1, argv + argc, names_a_run) &&
      std::none_of(argv + 1, argv + argc, names_a_collective))
    return run_predict_run(argc, argv);
  CLI::App app{
      "Predicts what a collective takes on a network, by running the schedules of the library in "
      "virtual time (docs/predict.md).",
      "sinew predict"};
  PredictAsked asked;
  bool json = false;
  app.add_option("collective", asked.collective, "e.g. allreduce")->required();
  app.add_option("--net", asked.net,
                 "the network: a model file, or alpha=5us,bw=25GB/s with exchange=, gamma=, copy= "
                 "(rates) and eager= (bytes) as needed")
      ->required();
  app.add_option("--algo", asked.algo, "algorithms, e.g. ring,binomial (default all that fit)");
  app.add_option("-p,--ranks", asked.ranks,
                 "rank counts: 8, or 6,12, or 8..1024, which doubles (default 8)");
  app.add_option("--bytes", asked.bytes, "sizes of the message, K/M/G binary (default 1M)");
  app.add_option("--nodes", asked.nodes, "node map: 2x4 is two nodes of four ranks");
  app.add_option("--root", asked.root, "the root, where there is one");
  app.add_option("--segments", asked.segments, "pipeline depth (default: as the library chooses)")
      ->check(between(1, 65536));
  app.add_option("--set", asked.settings,
                 "change a value of the model file, e.g. link.nic.gbytes_per_s=12.5")
      ->allow_extra_args(false);
  app.add_option("--samples", asked.samples, "runs of a network with noise (default 20)")
      ->check(between(1, 100000));
  app.add_option("--transport", asked.transport, "refuse a model that was measured over another");
  app.add_flag("--json", json, "one JSON document");
  if (const auto status = parse(app, argc, argv)) return *status;

  const auto collective = parse_collective(asked.collective);
  const auto network = load_network(asked.net, asked.settings);
  check_network(network, asked);
  if (app.count("--ranks") == 0 && !asked.nodes.empty())
    asked.ranks = std::to_string(parse_nodes(asked.nodes).size());
  std::vector<Point> points;
  ProgressLine progress;
  for (const auto bytes : parse_bytes_list(asked.bytes))
    for (const int ranks : parse_doubling_ranks(asked.ranks)) {
      auto point = ask(asked, collective, ranks, bytes, network, progress);
      if (point.answers.empty())
        throw Error(Errc::invalid_argument,
                    fmt::format("no algorithm of '{}' for {} fits {} ranks{}; `sinew list {}` says "
                                "what each needs",
                                asked.algo, name(collective), ranks,
                                network.board ? "" : " without shared memory", name(collective)));
      points.push_back(std::move(point));
    }
  progress.clear();
  for (const auto& warning : warnings_of(points))
    fmt::print(stderr, "{}\n", wrapped("sinew: " + warning, 79));
  json ? print_json(collective, points, network) : print_text(collective, points, network);
  return kFine;
}

}  // namespace sinew
