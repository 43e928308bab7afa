// `sinew predict FILE` for workloads that other tools wrote: GOAL and Chakra.
#pragma once

#include <string>

namespace sinew {

/// Whether the word names a file of one of those kinds.
bool names_a_trace(const std::string& word);
int run_predict_trace(int argc, char** argv);

}  // namespace sinew
