// `sinew train`: starts the program that trains, which is only there where libtorch is.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/verbs.hpp"

namespace sinew {

namespace {

// Passes over weights and activations wait for address translation in small pages. What a user has
// set stays.
void ask_for_huge_pages() { ::setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 0); }

}  // namespace

int run_train(int /*argc*/, char** argv) {
  ask_for_huge_pages();
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
