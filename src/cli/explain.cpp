// `sinew explain`: the longest chain of one collective, predicted or recorded.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/arguments.hpp"
#include "cli/networks.hpp"
#include "cli/output.hpp"
#include "cli/profile_folder.hpp"
#include "cli/verbs.hpp"
#include "model/crowding.hpp"
#include "model/predict.hpp"
#include "report/explain.hpp"
#include "report/recorded_steps.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

struct ExplainAsked {
  std::string what, algo, ranks = "8", bytes = "1M", net, nodes, format = "text";
  std::vector<std::string> settings;
  int root = 0;
  std::uint32_t segments = 0;
  std::uint32_t call = 0;
  bool call_given = false;
};

/// What is explained, whichever way it came about.
struct Story {
  std::string title{}, kind{}, collective{}, algorithm{};
  int ranks = 0;
  std::uint64_t bytes = 0;
  std::string consists_of{};
  Picoseconds time = 0;
  std::vector<Activity> activities{};
};

const Algorithm& algorithm_for(const ExplainAsked& asked, const Question& question,
                               const Network& network) {
  if (!asked.algo.empty()) return find_algorithm(question.collective, asked.algo);
  const Algorithm* best = nullptr;
  Picoseconds least = 0;
  for (const auto* algorithm : algorithms_of(question.collective)) {
    if (!fits(*algorithm, question, network)) continue;
    const auto time = predict(*algorithm, question, network).time;
    if (best == nullptr || time < least) best = algorithm, least = time;
  }
  if (best == nullptr)
    throw Error(Errc::invalid_argument, fmt::format("no algorithm of {} fits {} ranks",
                                                    name(question.collective), question.ranks));
  return *best;
}

Story predicted(const ExplainAsked& asked) {
  constexpr int kMostExplained = 16384;
  if (asked.net.empty())
    throw Error(Errc::invalid_argument,
                "on which network? Say --net FILE, or --net alpha=5us,bw=25GB/s");
  Question question{.collective = parse_collective(asked.what)};
  question.node_of = parse_nodes(asked.nodes);
  question.ranks = question.node_of.empty() ? one_size(asked.ranks, {})
                                            : static_cast<int>(question.node_of.size());
  question.bytes = static_cast<double>(parse_bytes(asked.bytes));
  question.root = asked.root;
  question.segments = asked.segments;
  question.samples = 1;
  if (question.ranks > kMostExplained)
    throw Error(Errc::invalid_argument,
                fmt::format("{} ranks are more than can be explained: at most {}", question.ranks,
                            kMostExplained));
  const auto network = load_network(asked.net, asked.settings);
  const auto& algorithm = algorithm_for(asked, question, network);
  if (!fits(algorithm, question, network))
    throw Error(Errc::invalid_argument,
                fmt::format("{} does not fit {} ranks on this network; `sinew list {}` says what "
                            "it needs",
                            algorithm.name, question.ranks, name(question.collective)));
  Story story{.kind = "predicted",
              .collective = std::string(name(question.collective)),
              .algorithm = std::string(algorithm.name),
              .ranks = question.ranks,
              .bytes = static_cast<std::uint64_t>(question.bytes)};
  const auto answer =
      predict(algorithm, question, network, {.collapse = false, .record = &story.activities});
  for (const auto& warning : answer.warnings)
    fmt::print(stderr, "{}\n", wrapped("sinew: " + warning, 79));
  story.time = answer.time;
  story.title = fmt::format("{} {} of {}, {} ranks: {} predicted", story.collective,
                            story.algorithm, human_bytes(story.bytes), story.ranks,
                            short_time(static_cast<double>(answer.time)));
  story.consists_of = fmt::format(
      "Of the chain alpha is {:.0f} %, beta {:.0f} %, gamma {:.0f} %, waiting {:.0f} %; it takes "
      "{:.2f} times what nothing can beat.",
      answer.alpha * 100, answer.beta * 100, answer.gamma * 100, answer.wait * 100,
      answer.ratio_to_bound());
  if (answer.correction != 1)
    story.consists_of += fmt::format(
        " Whole calls took {:.2f} times as long as their parts when this network was calibrated: "
        "the time above has that in it, the chain does not.",
        answer.correction);
  return story;
}

Story recorded(const ExplainAsked& asked) {
  const auto traces = read_folder(asked.what);
  const auto all = report::recorded_collectives(traces);
  if (all.empty())
    throw Error(Errc::invalid_argument,
                fmt::format("{} has no collective of Sinew with its steps; run the program with "
                            "SINEW_TRACE=FOLDER",
                            asked.what));
  auto which = std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.end_ns - a.begin_ns < b.end_ns - b.begin_ns;
  });
  if (asked.call_given)
    which = std::find_if(all.begin(), all.end(),
                         [&](const auto& one) { return one.sequence == asked.call; });
  if (which == all.end())
    throw Error(Errc::invalid_argument,
                fmt::format("{} has no collective {}; there are {} from {} to {}", asked.what,
                            asked.call, all.size(), all.front().sequence, all.back().sequence));
  Story story{.kind = "recorded",
              .collective = which->collective,
              .algorithm = which->algorithm,
              .ranks = which->ranks,
              .bytes = which->bytes};
  story.activities = report::recorded_steps(traces, *which);
  story.title = fmt::format("{} {} of {}, {} ranks, call {} of {}: {} measured", story.collective,
                            story.algorithm, human_bytes(story.bytes), story.ranks, which->sequence,
                            asked.what,
                            short_time(static_cast<double>(which->end_ns - which->begin_ns) * 1e3));
  story.consists_of =
      "Recorded are the ends of steps, so that what a rank computed between them shows as nothing "
      "moving.";
  return story;
}

Json to_json(const Story& story, const CriticalPath& path) {
  const auto us = [](Picoseconds ps) { return static_cast<double>(ps) / 1e6; };
  Json steps = Json::array(), waiting = Json::array();
  for (const auto& step : path.steps)
    steps.push_back({{"rank", step.rank},
                     {"op", name(step.op)},
                     {"peer", step.peer},
                     {"round", step.round},
                     {"bytes", step.bytes},
                     {"begin_us", us(step.begin)},
                     {"end_us", us(step.end)}});
  for (const auto& each : path.waiting)
    waiting.push_back({{"rank", each.rank}, {"awaited", each.awaited}, {"us", us(each.time)}});
  return {{"schema", "sinew-explain"},    {"version", 1},
          {"kind", story.kind},           {"collective", story.collective},
          {"algorithm", story.algorithm}, {"ranks", story.ranks},
          {"bytes", story.bytes},         {"time_us", us(path.end)},
          {"steps", std::move(steps)},    {"waiting", std::move(waiting)}};
}

}  // namespace

int run_explain(int argc, char** argv) {
  CLI::App app{
      "The longest chain of events of one collective: what it took so long for, who waits for "
      "whom, in words and as a drawing. Of a prediction, or of what ranks recorded (SINEW_TRACE).",
      "sinew explain"};
  ExplainAsked asked;
  bool json = false;
  app.add_option("what", asked.what, "a collective, e.g. allreduce; or a folder of traces")
      ->required();
  app.add_option("--net", asked.net, "the network: a model file, or alpha=5us,bw=25GB/s");
  app.add_option("--algo", asked.algo, "the algorithm (default: the fastest)");
  app.add_option("-p,--ranks", asked.ranks, "how many ranks (default 8)");
  app.add_option("--bytes", asked.bytes, "size of the message, K/M/G binary (default 1M)");
  app.add_option("--nodes", asked.nodes, "node map: 2x4 is two nodes of four ranks");
  app.add_option("--root", asked.root, "the root, where there is one");
  app.add_option("--segments", asked.segments, "pipeline depth")->check(between(1, 65536));
  app.add_option("--set", asked.settings, "change a value of the model file")
      ->allow_extra_args(false);
  app.add_option("--call", asked.call, "of a recording: which collective (default: the longest)");
  app.add_option("--format", asked.format, "text, svg or json");
  app.add_flag("--json", json, "the same as --format json");
  if (const auto status = parse(app, argc, argv)) return *status;
  asked.call_given = app.count("--call") > 0;
  if (json) asked.format = "json";
  constexpr std::array<std::string_view, 3> kFormats{"text", "svg", "json"};
  if (std::find(kFormats.begin(), kFormats.end(), asked.format) == kFormats.end())
    throw Error(Errc::invalid_argument, unknown("format", asked.format, kFormats));

  const auto story = std::filesystem::is_directory(asked.what) ? recorded(asked) : predicted(asked);
  const auto path = critical_path(story.activities);
  if (asked.format == "json") {
    fmt::print("{}\n", to_json(story, path).dump(1));
  } else if (asked.format == "svg") {
    fmt::print("{}", report::explain_as_svg(path, story.activities, story.title));
  } else {
    const Paint paint(stdout);
    fmt::print("{}\n\n{}\n", paint.bold(wrapped(story.title, 79)), report::explain_in_words(path));
    fmt::print("{}\n", report::explain_as_text(path, story.activities, terminal_columns() - 1));
    fmt::print("{}\n", wrapped(story.consists_of, 79));
    if (story.time > path.end)
      fmt::print(
          "Shown are the first passes through shared memory; the others are like the last.\n");
  }
  return kFine;
}

}  // namespace sinew
