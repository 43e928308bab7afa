// What every scheme gets for free: agreement, policies on NaN, warm-up, measures, faults.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/gradients.hpp"
#include "support/local_ranks.hpp"
#include "transport/faulty.hpp"

namespace sinew {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// B6: a NaN on one rank is everybody's business, in that very step, and no residual keeps it.
TEST(Compressor, B6_nan_is_propagated_and_not_kept) {
  for (const auto& scheme : schemes())
    for (const float poison : {kNaN, kInf, -kInf}) {
      const auto told = test::on_ranks(3, [&](Communicator& communicator) -> std::string {
        Compressor compressor(communicator, scheme, 500, {.density = 0.02});
        auto gradient = test::gradient(500, communicator.rank(), 0);
        compressor.allreduce(gradient);
        gradient = test::gradient(500, communicator.rank(), 1);
        if (communicator.rank() == 1) gradient[123] = poison;
        const auto& report = compressor.allreduce(gradient);
        if (scheme.sparse && !report.was_dense) return "the step was not dense";
        for (std::size_t i = 0; i < gradient.size(); ++i)
          if (std::isfinite(gradient[i]) != (i != 123)) return fmt::format("element {}", i);
        for (const float value : compressor.feedback().kept())
          if (!std::isfinite(value) || (report.was_dense && value != 0))
            return "a residual is left";
        return "";
      });
      EXPECT_EQ(told, "") << scheme.name;
    }
}

TEST(Compressor, B6_nan_skips_the_step_on_all_ranks) {
  for (const auto& scheme : schemes()) {
    const auto told = test::on_ranks(3, [&](Communicator& communicator) -> std::string {
      Compressor compressor(communicator, scheme, 500,
                            {.density = 0.02, .non_finite = NonFinite::skip});
      auto gradient = test::gradient(500, communicator.rank(), 0);
      compressor.allreduce(gradient);
      const std::vector<float> before(compressor.feedback().kept().begin(),
                                      compressor.feedback().kept().end());
      gradient = test::gradient(500, communicator.rank(), 1);
      if (communicator.rank() == 2) gradient[7] = kNaN;
      if (!compressor.allreduce(gradient).skipped) return "the step was not skipped";
      if (gradient != std::vector<float>(500)) return "the result is not zero";
      const std::vector<float> after(compressor.feedback().kept().begin(),
                                     compressor.feedback().kept().end());
      if (after != before) return "the residual has changed";
      gradient = test::gradient(500, communicator.rank(), 2);
      return compressor.allreduce(gradient).skipped ? "the next step was skipped too" : "";
    });
    EXPECT_EQ(told, "") << scheme.name;
  }
}

TEST(Compressor, B6_nan_is_an_error_on_all_ranks_and_they_go_on) {
  for (const auto& scheme : schemes()) {
    const auto told = test::on_ranks(3, [&](Communicator& communicator) -> std::string {
      Compressor compressor(communicator, scheme, 500,
                            {.density = 0.02, .non_finite = NonFinite::error});
      auto gradient = test::gradient(500, communicator.rank(), 0);
      if (communicator.rank() == 0) gradient[499] = kInf;
      const auto message = message_of([&] { compressor.allreduce(gradient); });
      if (!has(message, "NaN or an infinity")) return "said: " + message;
      for (const float value : compressor.feedback().kept())
        if (value != 0) return "a residual is left";
      gradient = test::gradient(500, communicator.rank(), 1);
      compressor.allreduce(gradient);
      return "";
    });
    EXPECT_EQ(told, "") << scheme.name;
  }
}

TEST(Compressor, warm_up_steps_are_dense) {
  const auto told = test::on_ranks(2, [](Communicator& communicator) -> std::string {
    Compressor compressor(communicator, find_scheme("oktopk"), 500,
                          {.density = 0.02, .dense_steps = 2});
    for (std::uint64_t step = 0; step < 4; ++step) {
      auto gradient = test::gradient(500, communicator.rank(), step);
      if (compressor.allreduce(gradient).was_dense != (step < 2))
        return fmt::format("step {}", step);
    }
    return "";
  });
  EXPECT_EQ(told, "");
}

TEST(Compressor, measures_are_those_of_the_definition) {
  const auto told = test::on_ranks(2, [](Communicator& communicator) -> std::string {
    Compressor compressor(communicator, find_scheme("topka"), 4,
                          {.target_items = 1, .op = ReduceOp::sum, .measure = true});
    std::vector<float> gradient{3, 0, 4, 0};
    const auto& report = compressor.allreduce(gradient);
    // Dense: 6 0 8 0; sent: 0 0 8 0.
    const bool good = std::abs(report.relative_error - 0.6) < 1e-9 &&
                      std::abs(report.cosine - 0.8) < 1e-9 && report.residual_norm == 3 &&
                      report.gradient_norm == 5 && report.items == 1 && report.density() == 0.25;
    return good ? ""
                : fmt::format("{} {} {}", report.relative_error, report.cosine,
                              report.residual_norm);
  });
  EXPECT_EQ(told, "");
}

TEST(Compressor, refuses_what_makes_no_sense) {
  test::on_local(1, [](Communicator& communicator) {
    const auto& scheme = find_scheme("oktopk");
    const auto said = [&](const CompressionOptions& options) {
      return message_of([&] { Compressor(communicator, scheme, 100, options); });
    };
    for (const double density : {0.0, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()})
      EXPECT_TRUE(has(said({.density = density}), "not in (0, 1]")) << density;
    EXPECT_TRUE(has(said({.target_items = 0}), "0 items"));
    EXPECT_TRUE(has(said({.op = ReduceOp::max}), "no max"));
    EXPECT_TRUE(has(said({.parameters = {{"repartion", 3}}}), "repartition"));
    EXPECT_TRUE(has(said({.parameters = {{"repartition", 0.5}}}), "whole number"));
    EXPECT_TRUE(has(message_of([&] {
                      Compressor(communicator, scheme, {{"a", {0}}}, {});
                    }),
                    "no elements"));
    Compressor compressor(communicator, scheme, 100);
    std::vector<float> wrong(99);
    EXPECT_TRUE(has(message_of([&] { compressor.allreduce(wrong); }), "99 elements"));
    EXPECT_TRUE(has(message_of([&] { compressor.load({}); }), "not saved by a compressor"));
  });
}

TEST(Compressor, ranks_that_differ_are_told_so) {
  const auto told = test::on_ranks(3, [](Communicator& communicator) -> std::string {
    const auto message = message_of([&] {
      Compressor(communicator, find_scheme("topka"), communicator.rank() == 2 ? 101 : 100);
    });
    return has(message, "ranks 0 and 2 differ in their elements (100 and 101)") ? "" : message;
  });
  EXPECT_EQ(told, "");
}

// 13. A rank that dies in the middle: all fail, and nobody has lost a gradient.
TEST(Compressor, a_lost_rank_leaves_all_that_came_in) {
  for (const std::string_view name : {"topka", "oktopk"}) {
    std::vector<std::string> faults(3);
    const auto errors = test::try_local(
        3,
        [&](Communicator& communicator) {
          Compressor compressor(communicator, find_scheme(name), 2000, {.density = 0.02});
          auto gradient = test::gradient(2000, communicator.rank(), 0);
          compressor.allreduce(gradient);
          if (communicator.rank() == 1) throw Error(Errc::system, "this rank gives up");
          auto expected = test::gradient(2000, communicator.rank(), 1);
          gradient = expected;
          const auto kept = compressor.feedback().kept();
          for (std::size_t i = 0; i < kept.size(); ++i) expected[i] += kept[i];
          auto& fault = faults[static_cast<std::size_t>(communicator.rank())];
          try {
            compressor.allreduce(gradient);
            fault = "no error";
          } catch (const Error&) {
            const auto now = compressor.feedback().kept();
            if (!std::equal(now.begin(), now.end(), expected.begin())) fault = "a gradient is lost";
          }
        },
        {.options = {.timeout = std::chrono::seconds(10)}});
    for (const auto& fault : faults) EXPECT_EQ(fault, "") << name;
    EXPECT_TRUE(errors[1].has_value());
  }
}

// A user's own scheme: a class and a row, nothing in the library.
class EveryOther final : public Scheme {
 public:
  Outcome exchange(Exchange& x) override {
    const auto sum = x.feedback.accumulate(x.gradient);
    const auto first = x.report.step % 2;
    std::fill(x.gradient.begin(), x.gradient.end(), 0.0F);
    std::vector<float> half;
    for (std::size_t i = first; i < sum.size(); i += 2) half.push_back(std::exchange(sum[i], 0.0F));
    x.allreduce("half", std::span(half), x.op);
    for (std::size_t i = 0; i < half.size(); ++i) x.gradient[first + 2 * i] = half[i];
    x.feedback.commit();
    return Outcome::done;
  }
};

TEST(Compressor, takes_a_scheme_from_outside_the_library) {
  const SchemeInfo own[] = {{.name = "every_other",
                             .summary = "even elements, then odd ones",
                             .make = [](const SchemeSetup&) -> std::unique_ptr<Scheme> {
                               return std::make_unique<EveryOther>();
                             },
                             .feedback = true}};
  const auto told = test::on_ranks(2, [&](Communicator& communicator) -> std::string {
    Compressor compressor(communicator, find_scheme("every_other", own), 4);
    std::vector<float> gradient{1, 2, 3, 4};
    compressor.allreduce(gradient);
    if (gradient != std::vector<float>{1, 0, 3, 0}) return "the first step is wrong";
    gradient = {1, 2, 3, 4};
    compressor.allreduce(gradient);
    return gradient == std::vector<float>{0, 4, 0, 8} ? "" : "the second step is wrong";
  });
  EXPECT_EQ(told, "");
}

}  // namespace
}  // namespace sinew
