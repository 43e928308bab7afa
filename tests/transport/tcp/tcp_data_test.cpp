// Every algorithm moves real data over sockets, and every byte is compared.
#include <gtest/gtest.h>

#include "support/exact_data.hpp"
#include "support/fork_ranks.hpp"

namespace sinew {
namespace {

class TcpRanks : public testing::TestWithParam<int> {};

void expect_exact(int size, std::vector<test::Trial> trials, const TcpOptions& options = {}) {
  std::erase_if(trials, [&](const test::Trial& trial) {
    return trial.shared_buffers || !trial.algorithm->fits({0, size, 0, 1, {}}, {});
  });
  ASSERT_FALSE(trials.empty());
  const auto wrong = test::fork_ranks(
      size,
      [&](const test::Seat& seat) {
        auto communicator = seat.join();
        int told = 0;
        for (const auto& trial : trials)
          if (const auto what = test::attempt(communicator, trial); !what.empty() && ++told <= 3)
            seat.tell(what);
      },
      test::Medium::tcp, options);
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

// Frames so small that nothing fits whole, spread over several connections.
TcpOptions cramped() {
  TcpOptions options;
  options.chunk = 320;
  options.streams = 3;
  options.sockbuf = 4096;
  return options;
}

TEST_P(TcpRanks, every_algorithm_gives_exact_results) {
  expect_exact(GetParam(), test::sweep(GetParam()));
}

TEST_P(TcpRanks, every_algorithm_gives_exact_results_in_small_frames_over_several_streams) {
  expect_exact(GetParam(), test::sweep(GetParam()), cramped());
}

// Slices so short that most chunks take several passes, and the last of some is empty on others.
TEST_P(TcpRanks, every_algorithm_gives_exact_results_in_slices) {
  TcpOptions options;
  options.chunk = 320;
  options.slice = 704;
  expect_exact(GetParam(), test::sweep(GetParam()), options);
}

TEST(TcpSealed, every_algorithm_gives_exact_results) {
  TcpOptions options;
  options.tls = true;
  expect_exact(3, test::sweep(3), options);
  options = cramped();
  options.tls = true;
  expect_exact(3, test::sweep(3), options);
}

INSTANTIATE_TEST_SUITE_P(Sizes, TcpRanks, testing::Values(1, 2, 3, 4, 5, 7, 8));

TEST(TcpLarge, allreduce_of_three_million_elements_is_exact) {
  for (const int size : {2, 4}) {
    std::vector<test::Trial> trials;
    for (const auto name : {"ring", "halving_doubling", "chain", "double_tree"})
      trials.push_back({&find_algorithm(Collective::allreduce, name), 3'000'017, DType::f32,
                        ReduceOp::sum, 0, size == 4, false, false});
    TcpOptions options;
    options.streams = size / 2;
    options.checksum = size == 2;
    expect_exact(size, trials, options);
  }
}

}  // namespace
}  // namespace sinew
