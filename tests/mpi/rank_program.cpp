// One rank of an MPI job: runs the checks it is told, and says what is wrong.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "mpi/rank_checks.hpp"

namespace {

std::atomic<std::size_t> news{0};

struct Check {
  std::string_view name;
  sinew::test::Lines (*run)();
};

using namespace sinew::test;  // NOLINT: a list of its functions
constexpr Check kChecks[] = {
    {"data", data},
    {"large", large},
    {"hosts", hosts},
    {"messages", messages},
    {"groups", groups},
    {"threads", threads},
    {"many", many},
    {"late", late},
    {"allocations", allocations},
    {"mismatched", mismatched},
    {"lengths", lengths},
    {"left", left},
    {"alone", alone},
    {"absent", absent},
    {"unread", unread},
    {"dies", dies},
};

Lines run(const Check& check) {
  try {
    return check.run();
  } catch (const std::exception& error) {
    return {fmt::format("threw: {}", error.what())};
  }
}

}  // namespace

std::size_t sinew::test::allocations_so_far() noexcept { return news; }

void* operator new(std::size_t bytes) {
  ++news;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++news;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return operator new(bytes, nothrow);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

int main(int argc, char** argv) {
  int status = 0;
  for (int i = 1; i < argc; ++i) {
    const auto* check = std::ranges::find(kChecks, argv[i], &Check::name);
    if (check == std::end(kChecks)) {
      fmt::print("no check {}\n", argv[i]);
      return 2;
    }
    const auto wrong = run(*check);
    constexpr std::size_t kMost = 5;
    for (std::size_t line = 0; line < std::min(kMost, wrong.size()); ++line)
      fmt::print("{}: {}\n", argv[i], wrong[line]);
    if (!wrong.empty()) status = 1;
  }
  std::fflush(stdout);
  return status;
}
