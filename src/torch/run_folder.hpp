// What a run leaves in its folder beside metrics and checkpoints: what it was, traces, the result
// and the report of it.
#pragma once

#include <memory>

#include "torch/options.hpp"

namespace sinew {

/// The trace of this worker; null without a folder, and with a server. Where it cannot be made
/// `watcher` is warned and the run goes on without.
std::unique_ptr<TrainTrace> open_trace(const TrainCommand& command, int rank, int size,
                                       TrainWatcher& watcher);

/// run.json, before the first step.
void write_beginning(const TrainCommand& command, int workers, int threads);
/// result.json and workers.csv.
void write_result(const TrainCommand& command, const TrainResult& result);
/// report.html, report.md and report.json, from the traces of all workers, which are closed;
/// without traces, none.
void write_report(const TrainCommand& command);

}  // namespace sinew
