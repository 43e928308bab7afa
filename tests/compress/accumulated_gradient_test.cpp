// Gradients that are added where the residual lies: the same bits as when both are apart, in every
// kind of step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "support/gradients.hpp"
#include "support/local_ranks.hpp"

namespace sinew {
namespace {

using test::difference;

constexpr std::size_t kElements = 3000;
constexpr std::uint64_t kSteps = 6, kBadStep = 4;

/// Gradient and residual in one, as a trainer has them.
struct Together {
  std::vector<float> sum = std::vector<float>(kElements);
  AccumulatedGradient gradient{sum};

  void add(std::span<const float> values) {
    if (gradient.was_dense()) std::fill(sum.begin(), sum.end(), 0.0F);
    for (std::size_t i = 0; i < kElements; ++i) sum[i] += values[i];
  }
  [[nodiscard]] std::vector<float> result() const {
    std::vector<float> all(kElements, 17.0F);
    gradient.write_result(all);
    return all;
  }
  [[nodiscard]] std::vector<float> kept() const {
    return gradient.was_dense() ? std::vector<float>(kElements) : sum;
  }
};

std::string compare(Communicator& communicator, const CompressionOptions& options, bool with_nan) {
  const auto& scheme = find_scheme("oktopk");
  Compressor apart(communicator, scheme, kElements, options);
  Compressor together(communicator, scheme, kElements, options);
  Together one;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    auto gradient = test::gradient(kElements, communicator.rank(), step);
    if (with_nan && step == kBadStep && communicator.rank() == communicator.size() - 1)
      gradient[17] = std::numeric_limits<float>::quiet_NaN();
    one.add(gradient);
    apart.allreduce(std::span(gradient));
    const auto& report = together.allreduce(one.gradient);
    if (auto fault = difference(gradient, one.result(), "result"); !fault.empty())
      return fmt::format("step {}: {}", step, fault);
    auto kept = std::vector<float>(apart.feedback().kept().begin(), apart.feedback().kept().end());
    kept.resize(kElements);
    if (auto fault = difference(kept, one.kept(), "residual"); !fault.empty())
      return fmt::format("step {}: {}", step, fault);
    if (!report.was_dense && one.gradient.result().indices.size() != report.items)
      return "the result has another number of items than the report";
  }
  return {};
}

TEST(AccumulatedGradient, has_the_bits_of_gradient_and_residual_apart) {
  for (const int size : {1, 2, 3, 5})
    for (const std::uint64_t dense_steps : {0, 2})
      for (const double density : {0.02, 1.0})
        for (const bool with_nan : {false, true}) {
          const CompressionOptions options{.density = density, .dense_steps = dense_steps};
          EXPECT_EQ(
              test::on_ranks(size, [&](Communicator& c) { return compare(c, options, with_nan); }),
              "")
              << size << " ranks, " << dense_steps << " dense steps, density " << density
              << (with_nan ? ", with a NaN" : "");
        }
}

TEST(AccumulatedGradient, takes_over_what_was_saved_apart) {
  EXPECT_EQ(test::on_ranks(3,
                           [](Communicator& c) -> std::string {
                             const auto& scheme = find_scheme("oktopk");
                             Compressor apart(c, scheme, kElements, {.density = 0.02});
                             auto gradient = test::gradient(kElements, c.rank(), 0);
                             apart.allreduce(std::span(gradient));
                             State state;
                             apart.save(state);
                             Compressor together(c, scheme, kElements, {.density = 0.02});
                             together.load(state);
                             Together one;
                             gradient = test::gradient(kElements, c.rank(), 1);
                             one.add(gradient);
                             apart.allreduce(std::span(gradient));
                             together.allreduce(one.gradient);
                             if (!together.feedback().kept().empty()) return "kept in two places";
                             return difference(gradient, one.result(), "result");
                           }),
            "");
}

TEST(AccumulatedGradient, is_handed_over_what_was_saved_before_anything_is_added) {
  EXPECT_EQ(test::on_ranks(2,
                           [](Communicator& c) -> std::string {
                             const auto& scheme = find_scheme("oktopk");
                             Compressor before(c, scheme, kElements, {.density = 0.02});
                             Together old;
                             old.add(test::gradient(kElements, c.rank(), 0));
                             before.allreduce(old.gradient);
                             State state, again;
                             before.save(state, old.gradient.kept());
                             Compressor after(c, scheme, kElements, {.density = 0.02});
                             after.load(state);
                             Together fresh;
                             after.hand_over(fresh.gradient);
                             after.save(again, fresh.gradient.kept());
                             if (!(again == state)) return "saved again, it is another state";
                             return difference(old.sum, fresh.sum, "kept");
                           }),
            "");
}

TEST(AccumulatedGradient, cannot_skip_a_step_and_says_so) {
  EXPECT_EQ(test::on_ranks(2,
                           [](Communicator& c) -> std::string {
                             Compressor skips(c, find_scheme("oktopk"), kElements,
                                              {.density = 0.02, .non_finite = NonFinite::skip});
                             Together one;
                             try {
                               skips.allreduce(one.gradient);
                               return "skipping was taken on";
                             } catch (const Error& error) {
                               if (error.code() != Errc::unsupported) return error.what();
                             }
                             return {};
                           }),
            "");
}

TEST(AccumulatedGradient, stays_as_it_came_in_where_a_nan_is_an_error) {
  EXPECT_EQ(
      test::on_ranks(2,
                     [](Communicator& c) -> std::string {
                       Compressor strict(c, find_scheme("oktopk"), kElements,
                                         {.density = 0.02, .non_finite = NonFinite::error});
                       Together one;
                       auto gradient = test::gradient(kElements, c.rank(), 0);
                       if (c.rank() == 1) gradient[5] = std::numeric_limits<float>::infinity();
                       one.add(gradient);
                       try {
                         strict.allreduce(one.gradient);
                         return "an infinity passed";
                       } catch (const Error& error) {
                         if (std::string(error.what()).find("what came in") == std::string::npos)
                           return error.what();
                       }
                       return difference(gradient, one.sum, "sum");
                     }),
      "");
}

TEST(AccumulatedGradient, loses_nothing_when_a_rank_dies) {
  for (const std::uint64_t dense_steps : {0, 1, 2}) {
    auto errors = test::try_local(2, [&](Communicator& c) {
      Compressor compressor(c, find_scheme("oktopk"), kElements,
                            {.density = 0.02, .dense_steps = dense_steps});
      Together one;
      one.add(test::gradient(kElements, c.rank(), 0));
      compressor.allreduce(one.gradient);
      if (c.rank() == 1) throw Error(Errc::system, "enough");
      one.add(test::gradient(kElements, c.rank(), 1));
      const auto came_in = one.sum;
      EXPECT_THROW(compressor.allreduce(one.gradient), Error);
      EXPECT_EQ(difference(came_in, one.sum, "sum"), "");
      EXPECT_FALSE(one.gradient.was_dense()) << "or whoever looks would clear it";
      EXPECT_EQ(difference(came_in, one.gradient.kept(), "kept"), "");
      EXPECT_TRUE(one.gradient.result().indices.empty());
    });
    EXPECT_TRUE(errors[1].has_value());
  }
}

// What is taken before anybody knows whether it will be sent.
TEST(AccumulatedGradient, takes_what_is_expected_to_be_sent_while_it_chooses) {
  Together one;
  const auto values = test::gradient(kElements, 0, 0);
  one.add(values);
  const auto sorted = [&] {
    auto magnitudes = values;
    for (auto& value : magnitudes) value = std::abs(value);
    std::sort(magnitudes.begin(), magnitudes.end(), std::greater<>());
    return magnitudes;
  }();
  one.gradient.expect(sorted[20]);
  const auto chosen = one.gradient.choose(60);
  EXPECT_EQ(chosen.taken, sorted[20]);
  EXPECT_EQ(std::count(one.sum.begin(), one.sum.end(), 0.0F) -
                std::count(values.begin(), values.end(), 0.0F),
            21);
  one.gradient.roll_back(ErrorFeedback::Keep::all);
  EXPECT_EQ(difference(values, one.sum, "sum"), "");

  one.gradient.expect(sorted[20]);
  one.gradient.choose(60);
  EXPECT_EQ(difference(values, one.gradient.fetch(), "fetched"), "");
  EXPECT_EQ(difference(values, one.sum, "sum"), "");

  one.gradient.choose(60);  // a hint is good for one step
  EXPECT_EQ(difference(values, one.sum, "sum"), "");
}

TEST(AccumulatedGradient, a_result_of_another_size_is_refused) {
  Together one;
  std::vector<float> short_one(kElements - 1);
  EXPECT_THROW(one.gradient.write_result(short_one), Error);
}

}  // namespace
}  // namespace sinew
