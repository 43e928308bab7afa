// A run in the text format that Prometheus reads (node_exporter's textfile collector, for one).
#pragma once

#include <string>

#include "torch/options.hpp"

namespace sinew {

/// While it runs: `since` has sums over `steps` steps of rank 0, which took `seconds`.
std::string prometheus_text(const StepRecord& record, const StepRecord& since, std::uint64_t steps,
                            double seconds, int workers);
/// At the end, of every worker.
std::string prometheus_text(const TrainResult& result);

/// Whole or not at all, as readers look at any time. Failing is no reason to stop: false.
bool write_prometheus(const std::string& path, const std::string& text);

}  // namespace sinew
