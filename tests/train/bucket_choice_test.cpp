// The bucket size that a cost function leads to.
#include "train/bucket_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <sinew/communicator.hpp>
#include "train/bucket_plan.hpp"

namespace sinew {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Sixteen tensors of 4 MiB.
std::vector<TensorSpec> layers() {
  std::vector<TensorSpec> all;
  for (int i = 0; i < 16; ++i) all.push_back({"layer" + std::to_string(i), {kMiB}});
  return all;
}

std::size_t buckets_with(std::uint64_t bytes) {
  return plan_buckets(layers(), bytes).buckets.size();
}

std::uint64_t chosen(bool hides, double alpha_us, double byte_us, bool compressed = false) {
  return choose_bucket_bytes({layers(), hides, compressed}, [=](std::uint64_t bytes) {
    return alpha_us + static_cast<double>(bytes) * byte_us;
  });
}

TEST(BucketChoice, what_cannot_be_hidden_goes_in_one) {
  EXPECT_EQ(buckets_with(chosen(false, 10, 0.001)), 1U);
}

TEST(BucketChoice, over_a_link_without_latency_every_tensor_goes_when_it_is_ready) {
  EXPECT_EQ(buckets_with(chosen(true, 0, 0.001)), 16U);
}

TEST(BucketChoice, the_longer_a_message_takes_to_begin_the_fewer_there_are) {
  std::size_t before = 17;
  for (const double alpha_us : {100.0, 2'000.0, 10'000.0, 100'000.0, 1e7}) {
    const auto buckets = buckets_with(chosen(true, alpha_us, 0.001));
    EXPECT_LE(buckets, before) << alpha_us;
    before = buckets;
  }
  EXPECT_LE(before, 2U);  // of two the first is hidden whole, however long it takes
}

TEST(BucketChoice, what_is_compressed_goes_in_one) {
  EXPECT_EQ(buckets_with(chosen(true, 0, 0.001, true)), 1U);
  EXPECT_EQ(buckets_with(chosen(true, 0, 0.001, false)), 16U);
}

TEST(BucketChoice, a_model_without_parameters_has_some_size) {
  EXPECT_GE(choose_bucket_bytes({}, [](std::uint64_t) { return 1.0; }), kMiB);
}

// No plan that was looked at may be better than the one that was chosen.
TEST(BucketChoice, is_the_best_of_those_it_looks_at) {
  const auto takes = [](std::uint64_t bytes) { return 900 + static_cast<double>(bytes) * 0.0005; };
  const auto arrives = [&](std::uint64_t bytes) {
    const auto plan = plan_buckets(layers(), bytes);
    const double backward = takes(64 * kMiB);
    double free = 0, elements = 0;
    for (const auto& bucket : plan.buckets) {
      elements += static_cast<double>(bucket.elements);
      const double ready = backward * elements / static_cast<double>(16 * kMiB);
      free = std::max(free, ready) + takes(bucket.elements * 4);
    }
    return free;
  };
  const auto best = choose_bucket_bytes({layers(), true}, takes);
  for (std::uint64_t bytes = kMiB; bytes <= 256 * kMiB; bytes *= 2)
    EXPECT_LE(arrives(best), arrives(bytes)) << bytes;
}

TEST(BucketChoice, ranks_take_rank_zeros) {
  std::vector<std::uint64_t> sizes(3);
  run_local(3, [&](Communicator& communicator) {
    const bool compressed = communicator.rank() == 0;  // the others would choose smaller ones
    sizes[static_cast<std::size_t>(communicator.rank())] =
        choose_bucket_bytes({layers(), true, compressed}, communicator);
  });
  EXPECT_EQ(buckets_with(sizes[0]), 1U);
  EXPECT_EQ(sizes[1], sizes[0]);
  EXPECT_EQ(sizes[2], sizes[0]);
}

}  // namespace
}  // namespace sinew
