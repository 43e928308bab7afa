// Which samples a worker gets: together all of them, once an epoch, as one worker alone would.
#include "train/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <sinew/error.hpp>

namespace sinew {
namespace {

Share share_of(const Sampling& sampling, std::uint64_t step) {
  Share share;
  Sampler(sampling).at(step, share);
  return share;
}

TEST(Sampler, deals_every_sample_once_an_epoch_whatever_the_workers) {
  for (const int workers : {1, 2, 3, 7})
    for (const std::size_t samples : {7UL, 50UL, 64UL, 101UL}) {
      Sampling sampling{samples, 16, 5, 0, workers};
      const auto steps = Sampler(sampling).steps_per_epoch();
      for (const std::uint64_t epoch : {0, 1}) {
        std::multiset<std::uint32_t> seen;
        for (auto step = epoch * steps; step < (epoch + 1) * steps; ++step)
          for (sampling.rank = 0; sampling.rank < workers; ++sampling.rank)
            for (const auto sample : share_of(sampling, step).samples) seen.insert(sample);
        ASSERT_EQ(seen.size(), samples);
        ASSERT_EQ(*seen.rbegin(), samples - 1);
        ASSERT_EQ(std::set<std::uint32_t>(seen.begin(), seen.end()).size(), samples);
      }
    }
}

TEST(Sampler, gives_workers_together_what_one_alone_gets_in_the_same_order) {
  for (std::uint64_t step = 0; step < 9; ++step) {
    const auto alone = share_of({100, 24, 3, 0, 1}, step);
    std::vector<std::uint32_t> together;
    for (int rank = 0; rank < 3; ++rank) {
      const auto part = share_of({100, 24, 3, rank, 3}, step);
      EXPECT_EQ(part.of_all, alone.of_all);
      together.insert(together.end(), part.samples.begin(), part.samples.end());
    }
    EXPECT_EQ(together, alone.samples);
  }
}

TEST(Sampler, ends_an_epoch_with_what_is_left_and_says_how_much_it_is) {
  const auto last = share_of({100, 32, 3, 0, 1}, 3);
  EXPECT_EQ(last.of_all, 4U);
  EXPECT_EQ(last.samples.size(), 4U);
  EXPECT_TRUE(share_of({34, 32, 3, 0, 3}, 1).samples.empty());  // two samples for three workers
}

TEST(Sampler, shuffles_each_epoch_and_each_seed_anew) {
  EXPECT_NE(share_of({100, 100, 3, 0, 1}, 0).samples, share_of({100, 100, 3, 0, 1}, 1).samples);
  EXPECT_NE(share_of({100, 100, 3, 0, 1}, 0).samples, share_of({100, 100, 4, 0, 1}, 0).samples);
}

TEST(Sampler, refuses_more_workers_than_samples) {
  try {
    Sampler({3, 8, 1, 0, 4});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_STREQ(error.what(), "4 workers for 3 samples: use fewer workers or more data");
  }
}

}  // namespace
}  // namespace sinew
