// Every algorithm moves real data over threads and over processes, and every byte is compared.
#include <gtest/gtest.h>

#include "support/exact_data.hpp"
#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

class Ranks : public testing::TestWithParam<int> {};

void expect_exact_over_local(int size, const std::vector<test::Trial>& trials,
                             const test::LocalSetup& setup = {}) {
  test::Complaints wrong(size);
  test::on_local(
      size,
      [&](Communicator& communicator) {
        for (const auto& trial : trials)
          wrong.add(communicator.rank(), test::attempt(communicator, trial));
      },
      setup);
  EXPECT_EQ(wrong.text(), "");
}

void expect_exact_over_shm(int size, const std::vector<test::Trial>& trials) {
  const auto wrong = test::fork_ranks(size, [&](const test::Seat& seat) {
    auto communicator = seat.join();
    int told = 0;
    for (const auto& trial : trials)
      if (const auto what = test::attempt(communicator, trial); !what.empty() && ++told <= 3)
        seat.tell(what);
  });
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

// Slots, fragments and arenas so small that nothing fits whole, with sizes that do not divide.
test::LocalSetup cramped() {
  test::LocalSetup setup;
  setup.segment.slot_bytes = 4096;
  setup.segment.lane_slot_bytes = 320;
  setup.segment.arena_bytes = std::size_t{4} << 20;
  return setup;
}

TEST_P(Ranks, every_algorithm_gives_exact_results_over_local) {
  expect_exact_over_local(GetParam(), test::sweep(GetParam()));
}

TEST_P(Ranks, every_algorithm_gives_exact_results_over_shm) {
  expect_exact_over_shm(GetParam(), test::sweep(GetParam()));
}

TEST_P(Ranks, every_algorithm_gives_exact_results_in_small_slices_and_fragments) {
  expect_exact_over_local(GetParam(), test::sweep(GetParam()), cramped());
}

INSTANTIATE_TEST_SUITE_P(Sizes, Ranks, testing::Values(1, 2, 3, 4, 5, 7, 8));

TEST(Large, allreduce_of_three_million_elements_is_exact) {
  for (const int size : {2, 4}) {
    std::vector<test::Trial> trials;
    for (const auto name : {"direct", "shared", "flat", "ring"})
      trials.push_back({&find_algorithm(Collective::allreduce, name), 3'000'017, DType::f32,
                        ReduceOp::sum, 0, size == 4, false, std::string_view(name) == "shared"});
    size == 2 ? expect_exact_over_local(size, trials) : expect_exact_over_shm(size, trials);
  }
}

// What all receive goes past the caches; in place it comes from a staged copy.
TEST(Large, alltoall_of_ranks_that_share_a_core_is_exact) {
  constexpr int kRanks = 8;  // more than the cores of a test machine, usually
  std::vector<test::Trial> trials;
  for (const bool in_place : {false, true})
    for (const std::size_t count : {std::size_t{70'001}, std::size_t{131'072}})
      trials.push_back({&find_algorithm(Collective::alltoall, "direct"), count, DType::f32,
                        ReduceOp::sum, 0, in_place, false, false});
  test::LocalSetup crowded;
  crowded.cores = 1;
  expect_exact_over_local(kRanks, trials, crowded);
  expect_exact_over_shm(kRanks, trials);
}

// One long-lived group runs everything twice: positions, parities and lanes carry over.
TEST(Repeats, results_stay_exact_when_algorithms_follow_each_other_in_any_order) {
  auto trials = test::sweep(3);
  std::vector<test::Trial> shuffled;
  for (std::size_t i = 0; i < 600; ++i) shuffled.push_back(trials[i * 7919 % trials.size()]);
  expect_exact_over_local(3, shuffled);
  expect_exact_over_local(3, shuffled, cramped());
}

}  // namespace
}  // namespace sinew
