// One rank of an MPI job: runs the checks it is told, and says what is wrong.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "mpi/rank_checks.hpp"

int main(int argc, char** argv) {
  int status = 0;
  for (int i = 1; i < argc; ++i) {
    const auto checks = sinew::test::rank_checks();
    const auto check = std::ranges::find(checks, argv[i], &sinew::test::RankCheck::name);
    if (check == checks.end()) {
      fmt::print("no check {}\n", argv[i]);
      return 2;
    }
    sinew::test::Lines wrong;
    try {
      wrong = check->run();
    } catch (const std::exception& error) {
      wrong.push_back(fmt::format("threw: {}", error.what()));
    }
    constexpr std::size_t kMost = 5;
    for (std::size_t line = 0; line < std::min(kMost, wrong.size()); ++line)
      fmt::print("{}: {}\n", argv[i], wrong[line]);
    if (!wrong.empty()) status = 1;
  }
  std::fflush(stdout);
  return status;
}
