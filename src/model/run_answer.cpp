#include "model/run_answer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/network_file.hpp"

namespace sinew {
namespace {

// Inputs that are worth a word when they change nothing: what was set, and what was described.
std::vector<std::string> inputs_of(const TrainingRun& run, const std::set<std::string>& changed) {
  const TrainingRun described_by_nobody;
  std::vector<std::string> inputs(changed.begin(), changed.end());
  for (const auto& setting : run_settings()) {
    const bool is_default = run.*setting.value == described_by_nobody.*setting.value;
    const bool says_little =
        setting.value == &TrainingRun::steps || setting.value == &TrainingRun::workers ||
        setting.value == &TrainingRun::batch || setting.value == &TrainingRun::element_bytes;
    const std::string key(setting.key);
    if (!is_default && !says_little && !changed.contains(key) &&
        !changed.contains(std::string(setting.alias)))
      inputs.push_back(key);
  }
  return inputs;
}

}  // namespace

RunAnswer answer_run(const TrainingRun& run, const Network* given, const RunQuestion& question,
                     const std::function<void(std::string_view)>& tell) {
  StepPredictor predictor(run, given, question.algorithms);
  RunAnswer answer{.run = run,
                   .source = question.source,
                   .network = predictor.network().name,
                   .about_network = describe(predictor.network())};
  const auto& counts = question.workers;
  for (const int workers : counts) {
    tell(fmt::format("{} workers", workers));
    answer.asked.push_back(predictor.at(workers));
    answer.schemes.push_back(predictor.all_schemes(workers));
  }
  answer.objections = check_stated(predictor);
  constexpr int kSoon = 8192;  // searching further than this would be felt
  if (counts.back() <= kSoon) {
    tell("how far it scales");
    answer.half_efficient = predictor.half_efficient(counts.front());
    answer.limit_known = true;
  }
  tell("what has an effect");
  // What has no effect on this many has none on more.
  std::vector<int> ends{std::min(counts.front(), kSoon)};
  if (counts.back() <= kSoon && counts.size() > 1) ends.push_back(counts.back());
  answer.no_effect =
      without_effect(predictor, given, question.algorithms, inputs_of(run, question.changed), ends);
  answer.left_out = predictor.left_out();
  return answer;
}

}  // namespace sinew
