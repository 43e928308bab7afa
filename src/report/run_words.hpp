// A training run on other numbers of workers in words: the same in a report and in `sinew predict`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/run_answer.hpp"

namespace sinew::report {

/// "9.00 ms", or "0".
std::string time_ms(double ms);
/// What the run is: its gradient, scheme and computing.
std::string run_text(const TrainingRun& run);
/// How far it scales; "" where that was not asked or nothing is computed.
std::string limit_text(const RunAnswer& answer);
/// What was measured at the run's own worker count; "" where nothing was.
std::string measured_text(const RunAnswer& answer);

/// What a step consists of. They add up to it.
struct RunPart {
  double StepPrediction::*ms;
  std::string_view fill;  // how charts draw it
  std::string_view label;
};
std::span<const RunPart> run_parts();
/// Whether it takes any time at any of the counts.
bool occurs(const RunPart& part, const RunAnswer& answer);
/// Whether the network says how far its answers may be off.
bool has_bounds(const RunAnswer& answer);

}  // namespace sinew::report
