// What is known about a run on several numbers of workers, as it is shown.
#pragma once

#include "model/run_answer.hpp"

namespace sinew {

void print_run_text(const RunAnswer& answer);
void print_run_json(const RunAnswer& answer);

}  // namespace sinew
