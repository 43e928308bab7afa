// Byte shuffle against the plain loop, and back.
#include "kernel/shuffle.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sinew {
namespace {

using Bytes = std::vector<std::byte>;

TEST(Shuffle, equals_the_plain_loop_and_comes_back) {
  for (const std::size_t width : {1U, 2U, 3U, 4U, 8U, 16U, 255U})
    for (std::size_t size = 0; size < 700; size += size < 40 ? 1 : 37) {
      Bytes data(size), fast(size), plain(size), back(size), plain_back(size);
      for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 31 + i / 256);
      shuffle_bytes(data, width, fast);
      shuffle_bytes_scalar(data, width, plain);
      EXPECT_EQ(fast, plain) << width << " " << size;
      unshuffle_bytes(fast, width, back);
      unshuffle_bytes_scalar(fast, width, plain_back);
      EXPECT_EQ(back, data) << width << " " << size;
      EXPECT_EQ(plain_back, data) << width << " " << size;
    }
}

TEST(Shuffle, puts_equal_bytes_of_elements_together) {
  const auto bytes = [](std::initializer_list<int> values) {
    Bytes result;
    for (const int value : values) result.push_back(static_cast<std::byte>(value));
    return result;
  };
  Bytes out(7);
  shuffle_bytes(bytes({1, 11, 2, 12, 3, 13, 99}), 2, out);
  EXPECT_EQ(out, bytes({1, 2, 3, 11, 12, 13, 99}));
}

}  // namespace
}  // namespace sinew
