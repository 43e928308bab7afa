// Schemes that send every element in fewer bits: how far off they may be, how many bytes they take,
// and that feedback keeps the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <sinew/error.hpp>
#include "support/local_ranks.hpp"
#include "support/scheme_run.hpp"

namespace sinew {
namespace {

using test::run_scheme;
constexpr int kSizes[] = {1, 2, 3, 4, 5, 7, 8};

std::uint64_t received(const StepReport& report, std::string_view phase) {
  for (const auto& entry : report.bytes)
    if (entry.phase == phase) return entry.received;
  return 0;
}

double sum_of(const std::vector<test::Stepped>& ranks, std::size_t i) {
  double sum = 0;
  for (const auto& one : ranks) sum += one.came_in[i];
  return sum;
}

// Each addend and each of the P - 1 sums is rounded once, to half a unit in the last place of at
// most the sum of magnitudes.
void check_half(std::string_view scheme, double unit_roundoff, double subnormal) {
  for (const int size : kSizes) {
    const auto steps = run_scheme({.scheme = scheme, .layout = {{"w", {1009}}}, .size = size});
    EXPECT_TRUE(test::ranks_agree(steps));
    const auto& ranks = steps.front();
    for (std::size_t i = 0; i < 1009; ++i) {
      double magnitudes = 0;
      for (const auto& one : ranks) magnitudes += std::abs(one.came_in[i]) / size;
      const double bound = (2 * size - 1) * (unit_roundoff * magnitudes * 1.01 + subnormal);
      ASSERT_NEAR(ranks[0].result[i], sum_of(ranks, i) / size, bound) << scheme << " " << size;
    }
  }
}

TEST(Half, fp16_rounds_each_addition_once) { check_half("fp16", 0x1p-11, 0x1p-25); }
TEST(Half, bf16_rounds_each_addition_once) { check_half("bf16", 0x1p-8, 0x1p-134); }

TEST(Half, alone_it_is_the_conversion) {
  const auto steps = run_scheme({.scheme = "fp16", .layout = {{"w", {100}}}});
  const auto& one = steps[0][0];
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(one.result[i], to_float(to_f16(one.came_in[i])));
}

TEST(Half, fp16_counts_what_overflows) {
  test::SchemeRun run{.scheme = "fp16",
                      .layout = {{"w", {3}}},
                      .options = {.op = ReduceOp::sum},
                      .size = 2,
                      .gradient = [](int, int) {
                        return std::vector<float>{40000, 1, -60000};
                      }};
  auto one = run_scheme(run)[0][1];
  EXPECT_EQ(one.report.overflows, 2U);
  EXPECT_TRUE(std::isinf(one.result[0]) && std::isinf(one.result[2]));
  EXPECT_EQ(one.result[1], 2);
  run.options.op = ReduceOp::avg;  // divided before it is added
  one = run_scheme(run)[0][1];
  EXPECT_EQ(one.report.overflows, 0U);
  EXPECT_EQ(one.result[0], 40000);
  run.options = {.op = ReduceOp::sum, .non_finite = NonFinite::skip};
  one = run_scheme(run)[0][1];
  EXPECT_TRUE(one.report.skipped);
  EXPECT_EQ(one.result, std::vector<float>(3));
  run.scheme = "bf16";
  EXPECT_EQ(run_scheme(run)[0][0].report.overflows, 0U);
}

// Deterministic rounding: at most half a scale when sent, and half a scale of the owner's sum.
TEST(Int8, error_is_at_most_half_a_scale_for_each_rounding) {
  constexpr std::size_t kElements = 3000, kBlock = 64;
  for (const int size : kSizes) {
    const auto steps = run_scheme({.scheme = "int8",
                                   .layout = {{"w", {kElements}}},
                                   .options = {.parameters = {{"block", kBlock}}},
                                   .size = size,
                                   .steps = 5});
    EXPECT_TRUE(test::ranks_agree(steps));
    for (const auto& ranks : steps) {
      for (std::size_t begin = 0; begin < kElements; begin += kBlock) {
        const auto end = std::min(begin + kBlock, kElements);
        double scales = 0;
        for (const auto& one : ranks) {
          float largest = 0;
          for (auto i = begin; i < end; ++i) largest = std::max(largest, std::abs(one.came_in[i]));
          scales += largest / 127;
        }
        // The owner's scale is at most the sum of those of the ranks.
        for (auto i = begin; i < end; ++i)
          ASSERT_NEAR(ranks[0].result[i] * size, sum_of(ranks, i), scales * 1.0001) << size;
      }
      EXPECT_LT(test::lost_share(ranks), 1e-6) << size;
    }
  }
}

TEST(Int8, one_rank_rounds_to_the_nearest) {
  const auto steps =
      run_scheme({.scheme = "int8", .layout = {{"w", {4}}}, .gradient = [](int, int) {
                    return std::vector<float>{127, -1.4F, 0.6F, -126.6F};
                  }});
  EXPECT_EQ(steps[0][0].result, (std::vector<float>{127, -1, 1, -127}));
}

TEST(Int8, survives_the_smallest_and_the_largest_numbers) {
  const auto steps = run_scheme({.scheme = "int8",
                                 .layout = {{"w", {6}}},
                                 .options = {.parameters = {{"block", 2}}},
                                 .size = 2,
                                 .gradient = [](int, int) {
                                   return std::vector<float>{1e-45F, 0, 1e38F, -1e38F, -0.0F, 0};
                                 }});
  EXPECT_EQ(steps[0][0].result[0], 1e-45F);
  EXPECT_NEAR(steps[0][0].result[2], 1e38, 1e36);
  EXPECT_EQ(steps[0][0].result[5], 0);
}

// What leaves and enters a rank, to the byte: a block has its scale and a byte an element.
TEST(Int8, takes_a_byte_an_element_and_four_a_block) {
  const auto steps = run_scheme({.scheme = "int8",
                                 .layout = {{"w", {1000}}},
                                 .options = {.parameters = {{"block", 100}}},
                                 .size = 2,
                                 .tcp = true});
  const std::uint64_t region = 5 * 104;
  for (const auto& one : steps[0]) {
    EXPECT_EQ(received(one.report, "split"), region);
    EXPECT_EQ(received(one.report, "gather"), region);
    EXPECT_EQ(one.report.sent_bytes(), 2 * region);
  }
}

TEST(Qsgd, is_right_on_average) {
  constexpr std::size_t kElements = 48;
  constexpr int kDraws = 10000;
  const auto fixed = test::gradient(kElements, 0, 3);
  const auto steps = run_scheme({.scheme = "qsgd",
                                 .layout = {{"w", {kElements}}},
                                 .options = {.parameters = {{"levels", 4}, {"bucket", 16}}},
                                 .steps = kDraws,
                                 .gradient = [&](int, int) { return fixed; }});
  for (std::size_t i = 0; i < kElements; ++i) {
    double sum = 0, squares = 0;
    for (const auto& ranks : steps) {
      sum += ranks[0].result[i];
      squares += static_cast<double>(ranks[0].result[i]) * ranks[0].result[i];
    }
    const double mean = sum / kDraws, variance = squares / kDraws - mean * mean;
    EXPECT_NEAR(mean, fixed[i], 4 * std::sqrt(variance / kDraws) + 1e-6) << i;
    EXPECT_GT(variance, 0) << i;
  }
}

// Stochastic rounding: at most a whole step when sent, and a whole step of the owner's sum.
TEST(Qsgd, error_is_at_most_a_step_for_each_rounding) {
  constexpr std::size_t kElements = 2000, kBucket = 100;
  constexpr double kLevels = 15;
  for (const int size : kSizes) {
    const auto steps =
        run_scheme({.scheme = "qsgd",
                    .layout = {{"w", {kElements}}},
                    .options = {.parameters = {{"levels", kLevels}, {"bucket", kBucket}}},
                    .size = size});
    EXPECT_TRUE(test::ranks_agree(steps));
    const auto& ranks = steps[0];
    for (std::size_t begin = 0; begin < kElements; begin += kBucket) {
      double norms = 0;
      for (const auto& one : ranks) {
        double squares = 0;
        for (auto i = begin; i < begin + kBucket; ++i)
          squares += static_cast<double>(one.came_in[i]) * one.came_in[i];
        norms += std::sqrt(squares);
      }
      // Rounding away from zero makes the owner's norm larger by a step in each element at most.
      const double sent = norms / kLevels, sum = (norms + sent * std::sqrt(kBucket)) / kLevels;
      for (auto i = begin; i < begin + kBucket; ++i)
        ASSERT_NEAR(ranks[0].result[i] * size, sum_of(ranks, i), (sent + sum) * 1.0001);
    }
  }
}

TEST(Qsgd, a_level_takes_the_bits_it_needs) {
  for (const auto& [levels, bits] : std::vector<std::pair<double, std::uint64_t>>{
           {1, 2}, {3, 3}, {7, 4}, {127, 8}, {128, 9}, {32767, 16}}) {
    const auto steps = run_scheme({.scheme = "qsgd",
                                   .layout = {{"w", {1010}}},
                                   .options = {.parameters = {{"levels", levels}, {"bucket", 101}}},
                                   .size = 2,
                                   .tcp = true});
    EXPECT_EQ(received(steps[0][0].report, "split"), 5 * (4 + (101 * bits + 7) / 8)) << levels;
  }
}

TEST(Qsgd, other_seeds_and_other_steps_round_differently) {
  const auto fixed = test::gradient(100, 0, 3);
  const auto results = [&](double seed) {
    return run_scheme({.scheme = "qsgd",
                       .layout = {{"w", {100}}},
                       .options = {.parameters = {{"levels", 2}, {"seed", seed}}},
                       .steps = 2,
                       .gradient = [&](int, int) { return fixed; }});
  };
  const auto one = results(1), again = results(1), two = results(2);
  EXPECT_EQ(one[0][0].result, again[0][0].result);
  EXPECT_NE(one[0][0].result, one[1][0].result);
  EXPECT_NE(one[0][0].result, two[0][0].result);
}

TEST(OneBit, GRACE_1_signs_decode_to_the_two_means) {
  for (const int size : {1, 2}) {
    const auto steps = run_scheme(
        {.scheme = "onebit", .layout = {{"w", {4}}}, .size = size, .gradient = [](int, int) {
           return std::vector<float>{-1, -3, 2, 4};
         }});
    EXPECT_EQ(steps[0][0].result, (std::vector<float>{-2, -2, 3, 3})) << size;
    EXPECT_EQ(steps[0][0].kept, (std::vector<float>{1, -1, -1, 1}));
  }
}

TEST(OneBit, GRACE_5_a_sign_takes_one_bit) {
  const auto steps =
      run_scheme({.scheme = "onebit", .layout = {{"w", {1600}}}, .size = 2, .tcp = true});
  for (const auto& one : steps[0]) {
    EXPECT_EQ(received(one.report, "split"), 8 + 800 / 8U);
    EXPECT_EQ(received(one.report, "gather"), 8 + 800 / 8U);
  }
}

// Every column, or every tensor, has its own two means.
TEST(OneBit, means_are_of_a_column_or_of_a_tensor) {
  const auto result = [](double columns) {
    return run_scheme({.scheme = "onebit",
                       .layout = {{"w", {2, 3}}, {"b", {2}}},
                       .options = {.parameters = {{"columns", columns}}},
                       .gradient =
                           [](int, int) {
                             return std::vector<float>{1, 3, -2, 9, 11, -4, 100, 300};
                           }})[0][0]
        .result;
  };
  EXPECT_EQ(result(1), (std::vector<float>{2, 2, -2, 10, 10, -4, 200, 200}));
  EXPECT_EQ(result(0), (std::vector<float>{6, 6, -3, 6, 6, -3, 200, 200}));
}

TEST(OneBit, what_is_sent_and_what_is_kept_is_what_came_in) {
  for (const int size : kSizes)
    for (const double columns : {0.0, 1.0}) {
      const auto steps = run_scheme({.scheme = "onebit",
                                     .layout = {{"w", {30, 40}}, {"b", {17}}},
                                     .options = {.parameters = {{"columns", columns}}},
                                     .size = size,
                                     .steps = 20});
      EXPECT_TRUE(test::ranks_agree(steps));
      for (const auto& ranks : steps) EXPECT_LT(test::lost_share(ranks), 1e-6) << size;
    }
}

// Feedback is what makes it usable: the mean of the results approaches the gradient.
TEST(OneBit, feedback_delivers_everything_in_time) {
  const auto fixed = test::gradient(500, 0, 1);
  constexpr int kSteps = 400;
  const auto steps = run_scheme({.scheme = "onebit",
                                 .layout = {{"w", {500}}},
                                 .size = 3,
                                 .steps = kSteps,
                                 .gradient = [&](int, int) { return fixed; }});
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    double sum = 0;
    for (const auto& ranks : steps) sum += ranks[0].result[i];
    apart += (sum / kSteps - fixed[i]) * (sum / kSteps - fixed[i]);
    size += fixed[i] * fixed[i];
  }
  EXPECT_LT(std::sqrt(apart / size), 0.1);
}

}  // namespace
}  // namespace sinew
