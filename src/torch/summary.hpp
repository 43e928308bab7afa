// The end of a run, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "torch/options.hpp"

namespace sinew {

/// One document; docs/training.md names its fields.
nlohmann::ordered_json summary_json(const TrainCommand& command, const TrainResult& result);
/// A few lines, and a table with a line for each worker.
std::string summary_text(const TrainCommand& command, const TrainResult& result);
/// A row a worker, with every figure there is.
nlohmann::ordered_json workers_json(const TrainResult& result);
std::string workers_csv(const TrainResult& result);
/// What was asked for, with everything that was left to choose, and the versions.
nlohmann::ordered_json resolved_json(const TrainCommand& command, int workers, int threads);

}  // namespace sinew
