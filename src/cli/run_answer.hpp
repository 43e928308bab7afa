// What is known about a run on several numbers of workers, and how it is shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/scaling.hpp"
#include "model/stated.hpp"

namespace sinew {

struct RunAnswer {
  std::vector<StepPrediction> asked{};                 // the scheme asked for, at each count
  std::vector<std::vector<StepPrediction>> schemes{};  // all of them, fastest first, at each count
  std::optional<int> half_efficient{};
  bool limit_known = false;
  std::vector<Objection> objections{};
  std::vector<std::string> no_effect{};
  std::vector<std::string> left_out{};
  std::string source{};  // file or folder
};

void print_run_text(const RunAnswer& answer, const StepPredictor& predictor);
void print_run_json(const RunAnswer& answer, const StepPredictor& predictor);

}  // namespace sinew
