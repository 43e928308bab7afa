// `sinew calibrate --from FILE`: a network from what another tool measured.
#pragma once

namespace sinew {

/// Whether --from is among the words.
bool calibrates_from(int argc, char** argv);
int run_calibrate_from(int argc, char** argv);

}  // namespace sinew
