// Buffers that live in shared memory: had, used in place, given back, and never confused with
// private ones.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

test::LocalSetup one_mib() {
  test::LocalSetup setup;
  setup.segment.arena_bytes = std::size_t{1} << 20;
  return setup;
}

void sum_again_and_again(Communicator& c) {
  for (int repeat = 0; repeat < 10; ++repeat) {
    // More in total than the arena has: only reuse makes this possible.
    const std::size_t count = 50'000 + static_cast<std::size_t>(repeat) * 7;
    auto buffer = c.alloc_shared(count * sizeof(float));
    auto data = buffer.as<float>();
    ASSERT_EQ(data.size(), count);
    for (const auto algorithm : {"shared", "", "ring"}) {
      std::fill(data.begin(), data.end(), static_cast<float>(c.rank() + repeat));
      c.allreduce(data, ReduceOp::sum, {.algorithm = algorithm});
      const auto size = c.size();
      const auto expected = static_cast<float>(size * (size - 1) / 2 + repeat * size);
      ASSERT_EQ(std::count(data.begin(), data.end(), expected), static_cast<std::ptrdiff_t>(count))
          << algorithm;
    }
  }
}

TEST(SharedBuffers, are_summed_exactly_freed_and_had_again_over_local) {
  for (const int size : {1, 2, 3}) test::on_local(size, sum_again_and_again, one_mib());
}

TEST(SharedBuffers, are_summed_exactly_freed_and_had_again_over_shm) {
  const auto stories = test::fork_ranks(3, [](const test::Seat& seat) {
    auto communicator = seat.join("shared", {}, one_mib().segment);
    sum_again_and_again(communicator);
  });
  EXPECT_TRUE(stories.empty()) << stories.front();
}

TEST(SharedBuffers, work_out_of_place_at_differing_offsets) {
  test::on_local(2, [](Communicator& c) {
    SharedBuffer filler;
    if (c.rank() == 1) filler = c.alloc_shared(10'000);  // so that offsets differ
    auto in = c.alloc_shared(4000), out = c.alloc_shared(4000);
    std::fill(in.as<float>().begin(), in.as<float>().end(), 3.0F);
    c.allreduce(std::span<const float>(in.as<float>()), out.as<float>(), ReduceOp::sum,
                {.algorithm = "shared"});
    EXPECT_EQ(std::count(out.as<float>().begin(), out.as<float>().end(), 6.0F), 1000);
    EXPECT_EQ(std::count(in.as<float>().begin(), in.as<float>().end(), 3.0F), 1000);
  });
}

TEST(SharedBuffers, on_some_ranks_only_are_a_mismatch_and_not_garbage) {
  const auto errors = test::try_local(2, [](Communicator& c) {
    constexpr std::size_t kCount =
        300'000;  // large enough that shared buffers get their own algorithm
    auto buffer = c.alloc_shared(kCount * sizeof(float));
    std::vector<float> own(kCount, 1);
    std::fill(buffer.as<float>().begin(), buffer.as<float>().end(), 1.0F);
    const auto data = c.rank() == 0 ? buffer.as<float>() : std::span(own);
    c.allreduce(data);
    EXPECT_EQ(data[kCount - 1], 2.0F);  // either it works
    c.barrier();
  });
  for (const auto& error : errors)
    EXPECT_TRUE(!error || error->code() == Errc::mismatch) << error->what();  // or all know why not
  EXPECT_EQ(errors[0].has_value(), errors[1].has_value());
}

TEST(SharedBuffers, asked_for_by_name_need_shared_memory) {
  test::on_local(2, [](Communicator& c) {
    std::vector<float> own(100, 1);
    try {
      c.allreduce(std::span(own), ReduceOp::sum, {.algorithm = "shared"});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::unsupported) << error.what();
    }
    c.barrier();
  });
}

TEST(SharedBuffers, that_do_not_fit_are_an_error_that_says_so_and_nothing_is_lost) {
  test::on_local(
      1,
      [](Communicator& c) {
        std::vector<SharedBuffer> buffers;
        for (int i = 0; i < 4; ++i) buffers.push_back(c.alloc_shared(std::size_t{256} << 10));
        try {
          buffers.push_back(c.alloc_shared(1));
          ADD_FAILURE();
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), Errc::out_of_memory);
          EXPECT_NE(std::string(error.what()).find("1 MiB arena"), std::string::npos)
              << error.what();
        }
        // Freed in the middle and at the end, the pieces become one again.
        buffers.erase(buffers.begin() + 1);
        EXPECT_NO_THROW(c.alloc_shared(std::size_t{256} << 10));
        buffers.clear();
        EXPECT_NO_THROW(c.alloc_shared(std::size_t{1} << 20));
      },
      one_mib());
}

TEST(SharedBuffers, come_zeroed_however_often_they_were_used) {
  test::on_local(
      1,
      [](Communicator& c) {
        for (int i = 0; i < 3; ++i) {
          auto buffer = c.alloc_shared(100'000);
          const auto bytes = buffer.as<std::uint8_t>();
          EXPECT_TRUE(
              std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b == 0; }));
          std::fill(bytes.begin(), bytes.end(), std::uint8_t{7});
        }
      },
      one_mib());
}

}  // namespace
}  // namespace sinew
