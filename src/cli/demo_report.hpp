// Two runs of `sinew train` side by side: what they reached and what it cost.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "model/network.hpp"

namespace sinew {

/// A line of a comparison: a figure of both runs, as text.
struct ComparedFigure {
  std::string name, first, second;
};

/// What larger groups would take a step, modelled.
struct PredictedStep {
  int workers = 0;
  double compute_ms = 0, first_ms = 0, second_ms = 0;  // communication of each run
};

struct TrainComparison {
  std::string first, second;  // what the runs are called
  std::string verdict;        // one sentence
  std::vector<ComparedFigure> figures;
  std::vector<PredictedStep> predicted;
  std::string network;  // of the prediction
};

/// From what `--json` gives of both runs.
TrainComparison compare_runs(const nlohmann::json& dense, const nlohmann::json& sparse,
                             const Network& network);

/// Tables of at most 80 columns.
std::string to_text(const TrainComparison& comparison);
std::string to_markdown(const TrainComparison& comparison);
/// One page that needs nothing else.
std::string to_html(const TrainComparison& comparison);

}  // namespace sinew
