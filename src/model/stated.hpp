// What somebody says a run's communication takes, held against the model: which known mistake
// explains the figure.
#pragma once

#include <string>
#include <vector>

#include "model/scaling.hpp"

namespace sinew {

struct Objection {
  std::string id;      // "bytes-over-bandwidth"
  std::string claim;   // what is wrong, one sentence
  std::string reason;  // the arithmetic
  double stated = 0, modelled = 0;
  std::string unit;  // "ms", "s", "x"
};

/// Empty when nothing stated contradicts the model.
std::vector<Objection> check_stated(StepPredictor& predictor);

}  // namespace sinew
