// Labels out of frames, and distances between labels.
#include "train/transcript.hpp"

#include <gtest/gtest.h>

namespace sinew {
namespace {

using Labels = std::vector<std::int64_t>;

TEST(Transcript, takes_out_repeats_and_blanks_but_not_a_letter_that_comes_twice) {
  EXPECT_EQ(collapse(Labels{0, 3, 3, 0, 3, 5, 5, 0, 0, 1}), (Labels{3, 3, 5, 1}));
  EXPECT_EQ(collapse(Labels{0, 0}), Labels{});
  EXPECT_EQ(collapse({}), Labels{});
}

TEST(Transcript, distance_counts_insertions_deletions_and_changes) {
  EXPECT_EQ(edit_distance({}, {}), 0U);
  EXPECT_EQ(edit_distance(Labels{1, 2, 3}, {}), 3U);
  EXPECT_EQ(edit_distance({}, Labels{1, 2}), 2U);
  EXPECT_EQ(edit_distance(Labels{1, 2, 3}, Labels{1, 9, 3}), 1U);
  EXPECT_EQ(edit_distance(Labels{11, 9, 20, 20, 5, 14}, Labels{19, 9, 20, 20, 9, 14, 7}), 3U);
}

}  // namespace
}  // namespace sinew
