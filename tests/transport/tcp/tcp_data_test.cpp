// Every algorithm moves real data over sockets, and every byte is compared.
#include <fmt/format.h>
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

struct Sent final : Observer {
  void on_event(const Event& event) noexcept override {
    if (event.kind != EventKind::step || event.operation != static_cast<std::uint8_t>(Op::send))
      return;
    ++messages;
    bytes += event.bytes;
    longest = std::max(longest, event.bytes);
  }
  std::uint64_t messages = 0, bytes = 0, longest = 0;
};

// That there are slices, and that what is recorded of them adds up. A ring of two sends half of the
// data twice; these ranks are on one host.
TEST(TcpSlices, are_as_long_as_was_asked_for_or_a_mebibyte) {
  struct Case {
    std::optional<std::size_t> slice;
    std::size_t elements;
    std::uint64_t messages, most_bytes;
  };
  for (const auto& one : {Case{4096, 10'000, 2 * 5, 4096}, Case{{}, 1'000'000, 2 * 2, 1 << 20},
                          Case{{}, 250'000, 2, 1 << 20}, Case{0, 1'000'000, 2, 2'000'000}}) {
    TcpOptions options;
    options.slice = one.slice;
    const auto wrong = test::fork_ranks(
        2,
        [&](const test::Seat& seat) {
          auto communicator = seat.join();
          Sent sent;
          communicator.observe(&sent);
          std::vector<float> data(one.elements, 1);
          communicator.allreduce(std::span(data), ReduceOp::sum, {.algorithm = "ring"});
          communicator.observe(nullptr);
          if (sent.messages != one.messages || sent.bytes != 4 * one.elements ||
              sent.longest > one.most_bytes)
            seat.tell(fmt::format("{} messages, {} bytes, {} at most", sent.messages, sent.bytes,
                                  sent.longest));
        },
        test::Medium::tcp, options);
    EXPECT_TRUE(wrong.empty()) << wrong.front();
  }
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

// Of messages that no slice makes short, many frames go out together, time and again.
TEST(TcpLarge, many_frames_at_a_time_arrive_whole) {
  std::vector<test::Trial> trials;
  for (const auto name : {"ring", "chain"})
    trials.push_back({&find_algorithm(Collective::allreduce, name), 1'500'017, DType::f32,
                      ReduceOp::sum, 0, true, false, false});
  for (const bool tls : {false, true})
    for (const bool narrow : {false, true}) {
      TcpOptions options;
      options.slice = 0;
      options.tls = tls;
      if (narrow) options.chunk = 8'192, options.sockbuf = 20'000;
      expect_exact(2, trials, options);
    }
}

}  // namespace
}  // namespace sinew
