#include "cli/open_page.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/verbs.hpp"
#include "measure/peers.hpp"

namespace sinew {

int open_page(const std::string& path) {
  const char* const wanted = std::getenv("BROWSER");
  std::string program = wanted != nullptr ? wanted : "xdg-open";
  if (!bench::on_path(program)) {
    fmt::print(stderr, "sinew: there is no {} to show it with; open {} yourself\n", program, path);
    return kMissing;
  }
  std::string page = path;
  char* const words[] = {program.data(), page.data(), nullptr};
  pid_t child = -1;
  int status = 0;
  if (::posix_spawnp(&child, program.c_str(), nullptr, nullptr, words, environ) != 0 ||
      ::waitpid(child, &status, 0) != child || status != 0) {
    fmt::print(stderr, "sinew: {} could not show {}\n", program, path);
    return kFailed;
  }
  return kFine;
}

}  // namespace sinew
