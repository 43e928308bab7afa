#include "cli/predict_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/networks.hpp"
#include "cli/output.hpp"
#include "cli/recorded_run.hpp"
#include "cli/run_answer.hpp"
#include "cli/verbs.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;

struct Asked {
  std::string run, net, workers, pattern, algo;
  std::vector<std::string> settings;
  bool overlap = false, json = false;
};

TrainingRun load_run(const std::string& path) {
  return fs::is_directory(path) ? read_recorded_run(path) : parse_run(read_text(path), path);
}

// Inputs that are worth a word when they change nothing: what was set, and what was described.
std::vector<std::string> inputs_of(const TrainingRun& run, const std::set<std::string>& set) {
  static const TrainingRun kDefault;
  std::vector<std::string> inputs(set.begin(), set.end());
  for (const auto& setting : run_settings()) {
    const bool is_default = run.*setting.value == kDefault.*setting.value;
    const bool says_little =
        setting.value == &TrainingRun::steps || setting.value == &TrainingRun::workers ||
        setting.value == &TrainingRun::batch || setting.value == &TrainingRun::element_bytes;
    const std::string key(setting.key);
    if (!is_default && !says_little && !set.contains(key) &&
        !set.contains(std::string(setting.alias)))
      inputs.push_back(key);
  }
  return inputs;
}

RunAnswer answer_for(const Asked& asked, StepPredictor& predictor, const Network* given,
                     const std::vector<std::string>& algorithms, const std::set<std::string>& set) {
  const auto& run = predictor.run();
  const auto counts = parse_doubling_ranks(
      asked.workers.empty() ? fmt::format("{:.0f}", run.workers) : asked.workers);
  RunAnswer answer{.source = asked.run};
  ProgressLine progress;
  for (const int workers : counts) {
    progress.show(fmt::format("{} workers", workers));
    answer.asked.push_back(predictor.at(workers));
    answer.schemes.push_back(predictor.all_schemes(workers));
  }
  answer.objections = check_stated(predictor);
  constexpr int kSoon = 8192;  // searching further than this would be felt
  if (counts.back() <= kSoon) {
    progress.show("how far it scales");
    answer.half_efficient = predictor.half_efficient(counts.front());
    answer.limit_known = true;
  }
  progress.show("what has an effect");
  // What has no effect on this many has none on more.
  std::vector<int> ends{std::min(counts.front(), kSoon)};
  if (counts.back() <= kSoon && counts.size() > 1) ends.push_back(counts.back());
  answer.no_effect = without_effect(predictor, given, algorithms, inputs_of(run, set), ends);
  answer.left_out = predictor.left_out();
  progress.clear();
  return answer;
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
  Asked asked;
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
  std::vector<std::string> algorithms;
  if (!asked.algo.empty() && asked.algo != "all")
    for (const auto word : split(asked.algo, ',')) algorithms.emplace_back(word);
  std::optional<Network> given;
  if (!asked.net.empty()) given = load_network(asked.net);
  const Network* network = given ? &*given : nullptr;
  StepPredictor predictor(run, network, algorithms);
  const auto answer = answer_for(asked, predictor, network, algorithms, set);
  asked.json ? print_run_json(answer, predictor) : print_run_text(answer, predictor);
  return kFine;
}

}  // namespace sinew
