#include "transport/time_slice.hpp"

#include <gtest/gtest.h>

namespace sinew {
namespace {

TEST(TimeSlice, is_short_for_a_while_and_then_as_before) {
  const auto before = TimeSlice::current_ns();
  if (before == 0) GTEST_SKIP() << "this kernel gives threads no slices of their own";
  {
    TimeSlice slice;
    slice.shorten();
    slice.shorten();
    EXPECT_LT(TimeSlice::current_ns(), before);
    slice.restore();
    EXPECT_EQ(TimeSlice::current_ns(), before);
    slice.shorten();
    EXPECT_LT(TimeSlice::current_ns(), before);
  }
  EXPECT_EQ(TimeSlice::current_ns(), before) << "at the end at the latest";
}

}  // namespace
}  // namespace sinew
