// The parts of a summary that need more than sums: records, and a network.
#pragma once

#include <span>

#include "report/summary.hpp"

namespace sinew::report {

/// Splits, iterations, phases, lanes, algorithms, compression.
void add_detail(Summary& summary, const trace::Profile& profile,
                std::span<const trace::Trace> traces);

/// The rate of each class of calls, and the link beside it where one was named.
void add_link(Summary& summary, const SummaryOptions& options);

}  // namespace sinew::report
