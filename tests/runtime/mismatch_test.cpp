// Ranks that call different operations get an error that names both ranks and both operations:
// at the latest in the next operation, never wrong data in silence.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/fork_ranks.hpp"
#include "support/mismatches.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

// One process group runs all cases, each in a fresh communicator.
void expect_all_caught(test::Medium medium, int size, std::size_t count,
                       const std::function<int(std::size_t)>& odd_rank_of,
                       std::string_view algorithm = "") {
  const auto cases = test::mismatches();
  const auto live = [&](const test::Seat& seat) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Options options{.timeout = 10s};
      options.algorithm = algorithm;
      auto communicator = seat.join(fmt::format("case{}", i), options);
      seat.tell(test::provoke(communicator, cases[i], count, seat.rank == odd_rank_of(i)));
    }
  };
  test::ForkedRanks ranks(size, live, medium);
  const auto all = ranks.finish(60s);
  for (int rank = 0; rank < size; ++rank) {
    const auto& lines = all[static_cast<std::size_t>(rank)].lines;
    ASSERT_EQ(lines.size(), cases.size()) << "rank " << rank << (lines.empty() ? "" : lines.back());
    for (std::size_t i = 0; i < lines.size(); ++i)
      EXPECT_EQ(test::complaint(cases[i], lines[i], odd_rank_of(i)), "")
          << fmt::format("{} of {} floats, rank {} of {} over {}: {}", cases[i].what, count, rank,
                         size, name(medium), lines[i]);
  }
}

class Mismatched : public testing::TestWithParam<test::Medium> {};
INSTANTIATE_TEST_SUITE_P(Over, Mismatched, testing::ValuesIn(test::kMedia),
                         [](const auto& medium) { return std::string(name(medium.param)); });

TEST_P(Mismatched, calls_of_2_and_4_ranks_are_caught_at_every_size_and_name_both_sides) {
  for (const int size : {2, 4})
    for (const std::size_t count : {8UL, 1000UL, 50'000UL, 400'000UL})
      for (const int odd : {0, 1, size - 1})
        expect_all_caught(GetParam(), size, count, [=](std::size_t) { return odd; });
}

TEST_P(Mismatched, calls_are_caught_on_every_path) {
  const auto takes_part = [](std::string_view algorithm) {
    return GetParam() == test::Medium::shm || (algorithm != "direct" && algorithm != "flat");
  };
  for (const auto algorithm : {"ring", "direct", "flat", "linear", "binomial", "chain"})
    for (const std::size_t count : {100UL, 100'000UL})
      if (takes_part(algorithm))
        expect_all_caught(
            GetParam(), 4, count, [](std::size_t i) { return static_cast<int>(i % 4); }, algorithm);
}

// Rank 0 runs ahead through operations that wait for nobody: the other is caught all the same.
TEST_P(Mismatched, a_rank_that_never_waits_is_caught_where_it_first_does) {
  const auto stories = test::fork_ranks(
      2,
      [](const test::Seat& seat) {
        auto communicator = seat.join("ahead", {.timeout = 10s});
        std::vector<float> data(200'000, 1), small(4, 1);
        try {
          if (seat.rank == 0) {
            communicator.broadcast(
                std::span(data), 0,
                {.algorithm = seat.medium == test::Medium::shm ? "direct" : "linear"});
          } else {
            communicator.reduce(std::span<const float>(small), std::span<float>(), 0, ReduceOp::sum,
                                {.algorithm = "binomial"});
          }
          communicator.barrier();
          seat.tell("nothing was noticed");
        } catch (const Error& error) {
          if (error.code() != Errc::mismatch) seat.tell(error.what());
        }
      },
      GetParam());
  EXPECT_TRUE(stories.empty()) << stories.front();
}

// Rank 1 sends 10 elements where rank 0 expects something else.
TEST_P(Mismatched, counts_that_only_their_owners_know_are_an_error_too) {
  const auto algorithms = GetParam() == test::Medium::shm
                              ? std::vector<std::string>{"", "linear", "pull"}
                              : std::vector<std::string>{"", "linear"};
  for (const auto& algorithm : algorithms)
    for (const std::size_t expected : {11UL, 9UL, 0UL}) {
      // Whoever sends what nobody asked for never hears of it.
      if (expected == 0 && algorithm != "pull") continue;
      const auto stories = test::fork_ranks(
          2,
          [&](const test::Seat& seat) {
            auto communicator = seat.join("counts", {.timeout = 10s});
            const std::vector<float> data(100, 1);
            std::vector<float> out(200);
            const std::size_t sends[] = {10, 10}, receives[] = {10, seat.rank == 0 ? expected : 10};
            try {
              communicator.alltoallv(std::span(data), sends, std::span(out), receives,
                                     {.algorithm = algorithm});
              communicator.barrier();
              seat.tell("nothing was noticed");
            } catch (const Error& error) {
              const std::string text = error.what();
              if (error.code() != Errc::mismatch ||
                  text.find("sends 40 bytes") == std::string::npos ||
                  text.find("expects " + std::to_string(4 * expected)) == std::string::npos)
                seat.tell(text);
            }
          },
          GetParam());
      EXPECT_TRUE(stories.empty()) << algorithm << " " << expected << ": " << stories.front();
    }
}

}  // namespace
}  // namespace sinew
