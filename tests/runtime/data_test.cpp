// Every algorithm moves real data over threads, and every byte is compared.
#include <gtest/gtest.h>

#include "support/exact_data.hpp"

namespace sinew {
namespace {

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, every_algorithm_gives_exact_results_over_local) {
  const int size = GetParam();
  std::vector<std::string> wrong(static_cast<std::size_t>(size));
  run_local(size, [&](Communicator& communicator) {
    for (const auto& trial : test::sweep(size)) {
      auto& mine = wrong[static_cast<std::size_t>(communicator.rank())];
      const auto what = test::attempt(communicator, trial);
      if (mine.empty()) mine = what;
    }
  }, {.timeout = std::chrono::seconds(120)});
  for (const auto& what : wrong) EXPECT_EQ(what, "");
}

INSTANTIATE_TEST_SUITE_P(Sizes, Ranks, testing::Values(1, 2, 3, 4, 5, 7, 8));

}  // namespace
}  // namespace sinew
