// `sinew verify`: proves algorithms over many places, or one schedule document.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "collective/sweep.hpp"
#include "schedule/crash.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

struct Counterexample {
  std::string place;
  std::string conditions;
  Fault fault;
};

struct Outcome {
  const Algorithm* algorithm = nullptr;
  std::uint64_t worlds = 0;  // times conditions
  bool same_order = true;
  bool rank_order = true;
  std::optional<Counterexample> wrong;
};

Outcome check(const Algorithm& algorithm, const std::vector<int>& sizes, ProgressLine& progress) {
  Outcome outcome;
  outcome.algorithm = &algorithm;
  for (const int size : sizes) {
    progress.show(fmt::format("{} {}: P={}, {} worlds", name(algorithm.collective), algorithm.name,
                              size, outcome.worlds));
    for (const auto& setting : settings(algorithm, size)) {
      const auto world = setting.world();
      for (const auto& condition : conditions(algorithm)) {
        const auto verdict = verify(world, condition);
        ++outcome.worlds;
        outcome.same_order &= verdict.same_order;
        outcome.rank_order &= verdict.rank_order;
        if (verdict.ok()) continue;
        outcome.wrong = {to_string(setting), to_string(condition), *verdict.fault};
        return outcome;
      }
    }
  }
  return outcome;
}

std::string properties(Collective collective, bool same_order, bool rank_order) {
  if (!reduces(collective)) return "";
  std::string text;
  if (collective == Collective::allreduce) text = same_order ? "same bits" : "bits may differ";
  if (rank_order) text += text.empty() ? "rank order" : ", rank order";
  return text;
}

void print_counterexample(const Counterexample& wrong) {
  fmt::print("{}\n  {}\n", wrapped("counterexample: " + wrong.place, 80, 2), wrong.conditions);
  if (wrong.fault.rank >= 0)
    fmt::print("  rank {}, round {}\n", wrong.fault.rank, wrong.fault.round);
  fmt::print("  {}\n", wrapped(wrong.fault.why, 80, 2, 2));
}

Json counterexample_json(const Counterexample& wrong) {
  return {{"place", wrong.place},
          {"conditions", wrong.conditions},
          {"rank", wrong.fault.rank},
          {"round", wrong.fault.round},
          {"why", wrong.fault.why}};
}

Json outcome_json(const Outcome& outcome) {
  Json json{{"collective", name(outcome.algorithm->collective)},
            {"algorithm", outcome.algorithm->name},
            {"ok", !outcome.wrong},
            {"worlds", outcome.worlds},
            {"same_order", outcome.same_order},
            {"rank_order", outcome.rank_order}};
  if (outcome.wrong) json["counterexample"] = counterexample_json(*outcome.wrong);
  return json;
}

std::vector<const Algorithm*> chosen(const std::string& collective, const std::string& algo) {
  std::vector<const Algorithm*> rows;
  if (collective.empty()) {
    for (const auto& algorithm : algorithms())
      if (algo == "all" || algorithm.name == algo) rows.push_back(&algorithm);
    if (rows.empty())
      throw Error(Errc::invalid_argument, fmt::format("no collective has an algorithm '{}'", algo));
    return rows;
  }
  const auto which = parse_collective(collective);
  if (algo == "all") return algorithms_of(which);
  return {&find_algorithm(which, algo)};
}

int verify_rows(const std::vector<const Algorithm*>& rows, const std::vector<int>& sizes,
                bool json) {
  const auto begin = std::chrono::steady_clock::now();
  const Paint paint(stdout);
  ProgressLine progress;
  std::vector<Outcome> outcomes;
  std::uint64_t worlds = 0;
  int refused = 0;
  for (const auto* row : rows) {
    const auto& outcome = outcomes.emplace_back(check(*row, sizes, progress));
    worlds += outcome.worlds;
    refused += outcome.wrong ? 1 : 0;
    if (json) continue;
    progress.clear();
    const auto label = outcome.wrong         ? paint.bad("WRONG")
                       : outcome.worlds == 0 ? paint.warn("no fit")
                                             : paint.good("ok");
    auto line =
        fmt::format("{:<14} {:<18} {}{}  {:>5} worlds  {}", name(row->collective), row->name, label,
                    std::string(6 - display_width(label), ' '), outcome.worlds,
                    outcome.wrong || outcome.worlds == 0
                        ? ""
                        : properties(row->collective, outcome.same_order, outcome.rank_order));
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
    if (outcome.wrong) print_counterexample(*outcome.wrong);
  }
  progress.clear();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (json) {
    Json results = Json::array();
    for (const auto& outcome : outcomes) results.push_back(outcome_json(outcome));
    fmt::print("{}\n", Json{{"schema", "sinew-verify"},
                            {"version", 1},
                            {"sinew", SINEW_VERSION},
                            {"ok", refused == 0},
                            {"worlds", worlds},
                            {"seconds", seconds},
                            {"results", std::move(results)}}
                           .dump(1));
  } else {
    fmt::print("{} algorithm{}, {} worlds, {} wrong, {:.1f} s\n", rows.size(),
               rows.size() == 1 ? "" : "s", worlds, refused, seconds);
  }
  return refused == 0 ? kFine : kWrong;
}

// A document may hold anybody's schedule, so nothing is promised about in-place calls: it is told.
int verify_document(const std::string& path, bool json) {
  const auto world = parse_world(read_text(path));
  const auto place = fmt::format("{}: {} {} P={} root={}", path, name(world.collective),
                                 world.ranks.front().name, world.ranks.size(), world.root);
  std::optional<Counterexample> wrong;
  Verdict verdict;
  for (const Conditions condition : {Conditions{.sends = Sends::buffered}, Conditions{}}) {
    verdict = verify(world, condition);
    if (verdict.ok() || wrong) continue;
    wrong = {place, to_string(condition), *verdict.fault};
  }
  const bool in_place = verify(world, {.placement = Placement::in_place}).ok();
  const bool by_reference = verify(world, {.exposure = Exposure::referenced}).ok();
  if (json) {
    Json document{{"schema", "sinew-verify"},
                  {"version", 1},
                  {"sinew", SINEW_VERSION},
                  {"schedule", path},
                  {"ok", !wrong},
                  {"same_order", verdict.same_order},
                  {"rank_order", verdict.rank_order},
                  {"in_place", in_place},
                  {"by_reference", by_reference}};
    if (wrong) document["counterexample"] = counterexample_json(*wrong);
    fmt::print("{}\n", document.dump(1));
  } else if (wrong) {
    print_counterexample(*wrong);
  } else {
    const auto text = properties(world.collective, verdict.same_order, verdict.rank_order);
    fmt::print("{}: ok{}{}\n  in place: {}; published by reference: {}\n", place,
               text.empty() ? "" : ", ", text, in_place ? "yes" : "no",
               by_reference ? "yes" : "no");
  }
  return wrong ? kWrong : kFine;
}

// With a death at any point: does anybody wait for ever?
int verify_crashes(const std::vector<const Algorithm*>& rows, const std::vector<int>& sizes,
                   bool json) {
  ProgressLine progress;
  std::uint64_t worlds = 0, states = 0;
  std::optional<Counterexample> wrong;
  for (const auto* algorithm : rows)
    for (const int size : sizes)
      for (const auto& setting : settings(*algorithm, size)) {
        if (setting.segments > 1 || wrong) continue;  // a pipeline is more of the same
        progress.show(fmt::format("{} {}: P={}, {} states", name(algorithm->collective),
                                  algorithm->name, size, states));
        const auto world = setting.world();
        for (const auto sends : {Sends::buffered, Sends::synchronous}) {
          const auto verdict = explore_crash(world, {.sends = sends});
          ++worlds;
          states += verdict.states;
          if (verdict.fault && !wrong)
            wrong = {to_string(setting), to_string(Conditions{.sends = sends}), *verdict.fault};
        }
      }
  progress.clear();
  if (json) {
    Json document{{"schema", "sinew-verify-crash"},
                  {"version", 1},
                  {"sinew", SINEW_VERSION},
                  {"ok", !wrong},
                  {"worlds", worlds},
                  {"states", states}};
    if (wrong) document["counterexample"] = counterexample_json(*wrong);
    fmt::print("{}\n", document.dump(1));
  } else if (wrong) {
    print_counterexample(*wrong);
  } else {
    fmt::print("{} worlds, {} states: wherever a rank dies, nobody waits for ever\n", worlds,
               states);
  }
  return wrong ? kWrong : kFine;
}

}  // namespace

int run_verify(int argc, char** argv) {
  CLI::App app{
      "Proves, with symbols instead of data, that schedules do what their collective\n"
      "promises: both send modes, roots, pipeline depths, node maps, in-place calls.",
      "sinew verify"};
  std::string collective, algo = "all", ranks = "1..16", schedule;
  bool all = false, json = false, crash = false;
  app.add_option("collective", collective, "only this one, e.g. allreduce");
  app.add_option("--algo", algo, "one algorithm, or all");
  app.add_flag("--all", all, "every algorithm of every collective");
  app.add_option("-p,--ranks", ranks, "rank counts, e.g. 1..33,64 (default 1..16)");
  app.add_option("--schedule", schedule, "a schedule document instead (- reads standard input)");
  app.add_flag("--crash", crash,
               "instead: every order of steps with a death at any point, 2..4 ranks unless given");
  app.add_flag("--json", json, "one JSON document");
  if (const auto status = parse(app, argc, argv)) return *status;

  if (!schedule.empty()) {
    if (all || crash || !collective.empty())
      throw Error(Errc::invalid_argument, "--schedule checks one document; leave the rest out");
    return verify_document(schedule, json);
  }
  if (collective.empty() && !all && algo == "all")
    throw Error(Errc::invalid_argument,
                "verify what? Name a collective, or say --all or --schedule");
  if (!collective.empty() && all)
    throw Error(Errc::invalid_argument, "--all is every collective; leave it or the name out");
  if (crash)
    return verify_crashes(chosen(collective, algo),
                          parse_ranks(app.count("--ranks") > 0 ? ranks : "2..4"), json);
  return verify_rows(chosen(collective, algo), parse_ranks(ranks), json);
}

}  // namespace sinew
