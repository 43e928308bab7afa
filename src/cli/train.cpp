// `sinew train`: starts the program that trains, which is only there where libtorch is.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "cli/verbs.hpp"

namespace sinew {

int run_train(int /*argc*/, char** argv) {
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sinew-train";
  ::execv(program.c_str(), argv);
  fmt::print(stderr,
             "sinew: training is not built here ({} is missing): apt-get install libtorch-dev, "
             "then configure and build again\n",
             program.string());
  return kMissing;
}

}  // namespace sinew
