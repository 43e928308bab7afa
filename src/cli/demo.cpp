#include "cli/verbs.hpp"
namespace sinew {
int run_demo(int, char**) { return kFine; }
}
