// Times and rates as people write them.
#include "base/units.hpp"

#include <gtest/gtest.h>

#include <sinew/error.hpp>

namespace sinew {
namespace {

TEST(Units, times_are_picoseconds) {
  EXPECT_EQ(parse_time_ps("5us"), 5e6);
  EXPECT_EQ(parse_time_ps("1.5 ms"), 1.5e9);
  EXPECT_EQ(parse_time_ps("0ns"), 0);
  EXPECT_EQ(parse_time_ps("2s"), 2e12);
  for (const auto wrong : {"", "5", "us", "-1us", "5 hours", "nan us", "inf s", "5usx"})
    EXPECT_THROW(parse_time_ps(wrong), Error) << wrong;
}

TEST(Units, rates_are_decimal) {
  EXPECT_EQ(parse_rate_byte_ps("25GB/s"), 40);
  EXPECT_EQ(parse_rate_byte_ps("100Mbit/s"), 80e3);
  EXPECT_EQ(parse_rate_byte_ps("1 MB/s"), 1e6);
  for (const auto wrong : {"", "25", "GB/s", "0GB/s", "-3GB/s", "25GiB/s", "25gb/s", "nanGB/s"})
    EXPECT_THROW(parse_rate_byte_ps(wrong), Error) << wrong;
}

TEST(Units, inputs_are_shown_as_they_were_given) {
  EXPECT_EQ(human_time_ps(5e6), "5 us");
  EXPECT_EQ(human_time_ps(30e9), "30 ms");
  EXPECT_EQ(human_time_ps(250e3), "250 ns");
  EXPECT_EQ(human_rate(40), "25 GB/s");
  EXPECT_EQ(human_rate(80e3), "12.5 MB/s");
}

}  // namespace
}  // namespace sinew
