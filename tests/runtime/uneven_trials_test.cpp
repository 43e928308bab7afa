// Trials of calls whose parts differ in size: what makes two such calls one kind.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/trial.hpp"
#include "support/local_ranks.hpp"
#include "support/trying.hpp"

namespace sinew {
namespace {

using test::local_trying;
using test::Names;
using test::Ran;

TEST(UnevenTrials, begin_when_the_same_counts_come_again) {
  Ran ran[2];
  test::on_local(
      2,
      [&](Communicator& c) {
        c.observe(&ran[c.rank()]);
        const auto gather = [&](std::size_t first, std::size_t second) {
          const std::size_t counts[] = {first, second};
          std::vector<float> in(counts[c.rank()], 1), out(first + second);
          c.allgatherv(std::span<const float>(in), std::span(out), counts);
        };
        for (std::size_t i = 0; i < 5; ++i) gather(300, 500 + i);
        for (int i = 0; i < 5; ++i) gather(300, 500);
      },
      local_trying(2));
  const auto best = ran[0].names.front();
  EXPECT_EQ(std::count(ran[0].names.begin(), ran[0].names.begin() + 7, best), 7);
  EXPECT_EQ(ran[0].names[8], "times");
  EXPECT_EQ(ran[0].names.size(), 11U);
  EXPECT_EQ(ran[1].names, ran[0].names);
}

// Counts of their own tell ranks nothing about a call, what it is said to be like does.
TEST(UnevenTrials, of_counts_that_only_their_owners_know_are_of_calls_about_as_long) {
  Ran ran[2];
  test::on_local(
      2,
      [&](Communicator& c) {
        c.observe(&ran[c.rank()]);
        const auto swap = [&](std::size_t count, std::uint64_t likely_bytes) {
          const std::size_t counts[] = {count, count};
          std::vector<float> in(2 * count, 1), out(2 * count);
          c.alltoallv(std::span<const float>(in), counts, std::span(out), counts,
                      {.likely_bytes = likely_bytes});
        };
        for (std::size_t i = 0; i < 4; ++i) swap(3000 + i, 25'000);
        for (std::size_t i = 0; i < 3; ++i) swap(4000 + i, 32'000);  // the same power of two
        for (std::size_t i = 0; i < 4; ++i) swap(10'000 + i, 80'000);
      },
      local_trying(2));
  const auto& names = ran[0].names;
  EXPECT_EQ(ran[1].names, names);
  ASSERT_EQ(names.size(), 13U);
  EXPECT_NE(names[0], names[1]);
  EXPECT_EQ(names[2], "times");
  EXPECT_EQ(Names(names.begin() + 3, names.begin() + 8), Names(5, names[3]));
  EXPECT_EQ(names[10], "times");
}

// A likely length is no count: calls of equal parts and of uneven ones share no trial, whatever
// their numbers.
TEST(UnevenTrials, are_apart_from_those_of_equal_parts) {
  test::Complaints wrong(2);
  test::on_local(
      2,
      [&](Communicator& c) {
        const auto swap = [&](std::size_t count, bool uneven, int step) {
          const std::size_t counts[] = {count, count};
          std::vector<float> in(2 * count), out(2 * count, -1);
          for (std::size_t i = 0; i < in.size(); ++i)
            in[i] = static_cast<float>(c.rank() * 1000 + step + (i < count ? 0 : 1));
          if (uneven)
            c.alltoallv(std::span<const float>(in), counts, std::span(out), counts,
                        {.likely_bytes = 20'000});  // 15 bits
          else
            c.alltoall(std::span<const float>(in), std::span(out));
          for (std::size_t i = 0; i < out.size(); ++i)
            if (out[i] != static_cast<float>((i < count ? 0 : 1000) + step + c.rank()))
              return wrong.add(c.rank(), "a wrong element in step " + std::to_string(step));
        };
        for (int step = 0; step < 6; ++step) swap(15, false, step);
        for (int step = 6; step < 12; ++step) swap(2500, true, step);
        for (int step = 12; step < 18; ++step) swap(15, false, step);
      },
      local_trying(2));
  EXPECT_EQ(wrong.text(), "");
}

TEST(UnevenTrials, of_lengths_that_differ_say_so) {
  const auto errors = test::try_local(
      2,
      [](Communicator& c) {
        const std::size_t counts[] = {100, 100};
        std::vector<float> in(200), out(200);
        c.alltoallv(std::span<const float>(in), counts, std::span(out), counts,
                    {.likely_bytes = c.rank() == 0 ? 4000U : 5000U});
        c.barrier();
      },
      local_trying(2));
  ASSERT_TRUE(errors[0].has_value());
  EXPECT_EQ(errors[0]->code(), Errc::mismatch);
  const std::string text = errors[0]->what();
  for (const auto* part : {"likely_bytes from 2048 to 4095", "likely_bytes from 4096 to 8191"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

// One that gives up may free what another reads, so that threads do not unless asked.
TEST(UnevenTrials, and_choices_between_threads_never_read_each_others_memory_unasked) {
  for (const bool deterministic : {false, true}) {
    auto setup = local_trying(deterministic ? 0 : -1);
    setup.options.deterministic = deterministic;
    Ran ran[2];
    test::on_local(
        2,
        [&](Communicator& c) {
          c.observe(&ran[c.rank()]);
          const std::size_t counts[] = {200'000, 200'000};
          std::vector<float> in(400'000), out(400'000);
          for (const auto* algorithm : {"", "", "pull"})
            c.alltoallv(std::span<const float>(in), counts, std::span(out), counts,
                        {.algorithm = algorithm, .likely_bytes = 1'600'000});
        },
        setup);
    ASSERT_EQ(ran[0].names.size(), 3U);
    EXPECT_NE(ran[0].names[0], "pull");
    EXPECT_NE(ran[0].names[1], "pull");
    EXPECT_EQ(ran[0].names[2], "pull");
  }
}

}  // namespace
}  // namespace sinew
