// What a training run takes on other numbers of workers, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "model/run_answer.hpp"

namespace sinew::report {

/// Schema "sinew-predict-run", version 1: what `sinew predict RUN --json` prints, and
/// "more_workers" of a report.
nlohmann::ordered_json run_json(const RunAnswer& answer);

}  // namespace sinew::report
