#include "cli/predict_run.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <set>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/networks.hpp"
#include "cli/output.hpp"
#include "cli/recorded_run.hpp"
#include "cli/run_answer_text.hpp"
#include "cli/verbs.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;

struct RunAsked {
  std::string run, net, workers, pattern, algo;
  std::vector<std::string> settings;
  bool overlap = false, json = false;
};

TrainingRun load_run(const std::string& path) {
  return fs::is_directory(path) ? read_recorded_run(path) : parse_run(read_text(path), path);
}

}  // namespace

bool names_a_run(const std::string& word) {
  if (word.empty() || word.front() == '-') return false;
  return fs::is_directory(word) || word.ends_with(".toml") || word.find('/') != std::string::npos;
}

int run_predict_run(int argc, char** argv) {
  CLI::App app{
      "Predicts what a training run would take on other numbers of workers: RUN is the folder of "
      "`sinew train -o`, or a file that describes one (docs/format-run.md).",
      "sinew predict"};
  RunAsked asked;
  app.add_option("run", asked.run, "a run folder, or a description in TOML")->required();
  app.add_option("--workers,-p", asked.workers,
                 "worker counts: 8, or 6,12, or 8..1024, which doubles (default: as in the run)");
  app.add_option("--net", asked.net,
                 "the network: a model file, or alpha=5us,bw=25GB/s (default: [link] of the "
                 "description)");
  app.add_option("--set", asked.settings,
                 "change inputs, e.g. batch=64, workers=32, link.nic.gbytes_per_s=12.5, "
                 "scheme=oktopk,density=0.01; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--pattern", asked.pattern,
                 "ddp (gradients summed up), zero3 (parameters spread out), moe (experts)");
  app.add_option("--algo", asked.algo, "algorithms to choose from (default all that fit)");
  app.add_flag("--overlap", asked.overlap, "buckets travel while the backward pass goes on");
  app.add_flag("--json", asked.json, "one JSON document");
  if (const auto status = parse(app, argc, argv)) return *status;

  auto run = load_run(asked.run);
  std::set<std::string> set;
  for (const auto& settings : asked.settings)
    for (const auto setting : split(settings, ','))
      if (setting.starts_with("workers="))
        asked.workers = setting.substr(setting.find('=') + 1);
      else
        set.insert(apply_setting(run, setting));
  if (!asked.pattern.empty()) apply_setting(run, "pattern=" + asked.pattern);
  if (asked.overlap) {
    run.overlap = 1;
    set.insert("overlap");
  }
  RunQuestion question{.source = asked.run, .changed = std::move(set)};
  if (!asked.algo.empty() && asked.algo != "all")
    for (const auto word : split(asked.algo, ',')) question.algorithms.emplace_back(word);
  question.workers = parse_doubling_ranks(asked.workers.empty() ? fmt::format("{:.0f}", run.workers)
                                                                : asked.workers);
  std::optional<Network> given;
  if (!asked.net.empty()) given = load_network(asked.net);
  ProgressLine progress;
  const auto answer = answer_run(run, given ? &*given : nullptr, question,
                                 [&progress](std::string_view what) { progress.show(what); });
  progress.clear();
  asked.json ? print_run_json(answer) : print_run_text(answer);
  return kFine;
}

}  // namespace sinew
