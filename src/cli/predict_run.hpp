// `sinew predict RUN`: what a training run would take on other numbers of workers.
#pragma once

#include <string>

namespace sinew {

/// Whether the first argument of `sinew predict` is a run (a file or a folder) and no collective.
bool names_a_run(const std::string& word);
int run_predict_run(int argc, char** argv);

}  // namespace sinew
