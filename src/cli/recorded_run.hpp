// The folder of a training run that took place, as a run to predict.
#pragma once

#include <string>

#include "model/training_run.hpp"

namespace sinew {

/// Whether it is the folder of `sinew train -o`, whatever became of the run.
bool is_recorded_run(const std::string& folder);

/// Reads run.json, result.json and the metrics of every rank, as `sinew train -o` wrote them.
/// Throws Error that names the file, and the line of metrics, that is missing or wrong.
TrainingRun read_recorded_run(const std::string& folder);

}  // namespace sinew
