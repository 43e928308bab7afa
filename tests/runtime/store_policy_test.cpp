// How slots are written: ranks that chose apart find together again.
#include "runtime/store_policy.hpp"

#include <gtest/gtest.h>

namespace sinew {
namespace {

TEST(StorePolicy, ranks_that_chose_apart_find_what_is_fast_for_both) {
  StorePolicy a, b;
  // As they begin, chance tells them different things.
  for (int run = 0; run < 6; ++run) {
    const bool streams = a.streams();
    EXPECT_EQ(streams, b.streams());
    a.took(streams ? 200'000 : 210'000);
    b.took(streams ? 210'000 : 200'000);
  }
  int together = 0;
  for (int run = 0; run < 400; ++run) {
    const bool one = a.streams(), other = b.streams();
    const std::uint64_t took = one && other ? 36'000 : 230'000;  // as slow as the slower of both
    a.took(took);
    b.took(took);
    together += run >= 200 && one && other ? 1 : 0;
  }
  EXPECT_GT(together, 190);
}

TEST(StorePolicy, follows_when_the_other_way_becomes_faster) {
  StorePolicy policy;
  const auto run = [&](int times, std::uint64_t ordinary, std::uint64_t streaming) {
    int streamed = 0;
    for (int i = 0; i < times; ++i) {
      const bool streams = policy.streams();
      policy.took(streams ? streaming : ordinary);
      streamed += streams ? 1 : 0;
    }
    return streamed;
  };
  run(200, 50'000, 100'000);
  EXPECT_LT(run(128, 50'000, 100'000), 10);
  run(200, 300'000, 100'000);
  EXPECT_GT(run(128, 300'000, 100'000), 118);
}

TEST(StorePolicy, long_runs_follow_what_only_a_trial_can_show) {
  StorePolicy policy;
  policy.expect(27);
  int streamed = 0;
  for (int i = 0; i < 2048; ++i) {
    const bool before = i < 100;
    const bool streams = policy.streams();
    // Ordinary stores become slow, but not as slow as streaming once was.
    policy.took(streams ? before ? 48'000'000 : 15'000'000 : before ? 12'000'000 : 40'000'000);
    streamed += i >= 1024 && streams ? 1 : 0;
  }
  EXPECT_GT(streamed, 1000);
}

TEST(StorePolicy, long_runs_try_the_other_way_less_often) {
  const auto tried = [](std::uint32_t passes) {
    StorePolicy policy;
    policy.expect(passes);
    int streamed = 0;
    for (int i = 0; i < 4096; ++i) {
      const bool streams = policy.streams();
      policy.took(streams ? 48'000'000 : 12'000'000);
      streamed += streams ? 1 : 0;
    }
    return streamed;
  };
  EXPECT_EQ(tried(1), 3 + 4096 / 64 / 2);
  EXPECT_EQ(tried(27), 3 + 4096 / 256 / 2);
}

}  // namespace
}  // namespace sinew
