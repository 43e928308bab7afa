// The plan of buckets: all gradients, each once, last layers first, and the same on all ranks.
#include "train/bucket_plan.hpp"

#include <gtest/gtest.h>

#include "support/local_ranks.hpp"

namespace sinew {
namespace {

std::vector<TensorSpec> layers(std::size_t count, std::size_t width = 100) {
  std::vector<TensorSpec> list;
  for (std::size_t i = 0; i < count; ++i)
    list.push_back({"layer" + std::to_string(i), {width + i}});
  return list;
}

TEST(BucketPlan, has_every_gradient_once_and_buckets_on_cache_lines) {
  for (const std::uint64_t bytes : {1UL, 1000UL, 5000UL, 1UL << 30}) {
    const auto plan = plan_buckets(layers(20), bytes);
    std::vector<int> users(plan.elements);
    for (std::size_t i = 0; i < plan.parameters.size(); ++i)
      for (std::size_t k = 0; k < plan.parameters[i].elements(); ++k) ++users[plan.first_of[i] + k];
    for (const auto& bucket : plan.buckets) {
      EXPECT_EQ(bucket.first % 16, 0U);
      for (std::size_t k = 0; k < bucket.elements; ++k)
        ASSERT_EQ(users[bucket.first + k], 1) << "no gaps within a bucket";
    }
    for (const auto used : users) ASSERT_LE(used, 1);
  }
}

TEST(BucketPlan, sends_the_last_layers_first) {
  const auto plan = plan_buckets(layers(10), 1);
  ASSERT_EQ(plan.buckets.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(plan.buckets[i].tensors, std::vector<std::size_t>{9 - i});
    EXPECT_EQ(plan.bucket_of[9 - i], i);
  }
}

TEST(BucketPlan, closes_a_bucket_at_its_size_and_the_first_at_a_quarter) {
  const auto plan = plan_buckets(layers(20, 100), 1600);
  EXPECT_EQ(plan.buckets[0].tensors.size(), 1U);
  EXPECT_EQ(plan.buckets[1].tensors.size(), 4U);
  EXPECT_EQ(plan_buckets(layers(20), 1UL << 30).buckets.size(), 1U);
}

TEST(BucketPlan, has_tags_that_tell_buckets_and_models_apart) {
  const auto plan = plan_buckets(layers(10), 1);
  EXPECT_NE(plan.tag(0), plan.tag(1));
  EXPECT_NE(plan.hash, plan_buckets(layers(10), 5000).hash);
  EXPECT_NE(plan.hash, plan_buckets(layers(11), 1).hash);
  EXPECT_EQ(plan.hash, plan_buckets(layers(10), 1).hash);
}

TEST(BucketPlan, that_differs_is_an_error_on_all_ranks_that_names_the_parameter) {
  const auto errors = test::try_local(3, [](Communicator& c) {
    auto list = layers(4);
    if (c.rank() == 2) list[1].shape = {7, 3};
    agree_on(plan_buckets(list, 1000), c);
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::mismatch);
  }
  EXPECT_STREQ(errors[2]->what(),
               "ranks 0 and 2 do not train the same model with the same buckets: rank 0 has layer1 "
               "(101), rank 2 has layer1 (7 x 3)");
}

TEST(BucketPlan, that_is_equal_is_agreed_on) {
  test::on_local(3, [](Communicator& c) { agree_on(plan_buckets(layers(4), 1000), c); });
}

}  // namespace
}  // namespace sinew
