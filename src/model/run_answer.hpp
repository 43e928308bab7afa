// What a training run takes on several numbers of workers. `sinew predict RUN` and reports ask
// here, so that both say the same.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/scaling.hpp"
#include "model/stated.hpp"

namespace sinew {

struct RunQuestion {
  std::string source{};                   // file or folder
  std::vector<int> workers{};             // rising, at least one
  std::vector<std::string> algorithms{};  // to choose from; empty: all
  std::set<std::string> changed{};        // inputs that somebody set
};

/// All of it is modelled but `run`, whose `measured` is what its name says.
struct RunAnswer {
  TrainingRun run{};
  std::string source{};                                // file or folder
  std::string network{}, about_network{};              // its name, and where it came from
  std::vector<StepPrediction> asked{};                 // the scheme asked for, at each count
  std::vector<std::vector<StepPrediction>> schemes{};  // all of them, fastest first, at each count
  std::optional<int> half_efficient{};
  bool limit_known = false;
  std::vector<Objection> objections{};
  std::vector<std::string> no_effect{};
  std::vector<std::string> left_out{};
};

/// `tell` hears what is under way, which can take seconds.
RunAnswer answer_run(const TrainingRun& run, const Network* given, const RunQuestion& question,
                     const std::function<void(std::string_view)>& tell);

}  // namespace sinew
