// What holds for every scheme of the registry, whatever it sends: odd sizes, zeros, NaN and
// infinities by the chosen policy, and going on after a restart.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <sinew/error.hpp>
#include "support/local_ranks.hpp"
#include "support/scheme_run.hpp"

namespace sinew {
namespace {

using test::run_scheme;

// Matrices, a vector, and a tensor of more dimensions.
const std::vector<TensorSpec> kLayout{{"w", {20, 30}}, {"b", {33}}, {"conv", {8, 4, 3, 3}}};
constexpr std::size_t kElements = 600 + 33 + 288;

TEST(EverySchemeHas, a_summary_and_help_for_its_parameters) {
  for (const auto& scheme : schemes()) {
    EXPECT_FALSE(scheme.summary.empty()) << scheme.name;
    for (const auto& parameter : scheme.parameters) {
      EXPECT_FALSE(parameter.help.empty()) << scheme.name;
      EXPECT_GE(parameter.value, parameter.least) << scheme.name << " " << parameter.name;
      EXPECT_LE(parameter.value, parameter.most) << scheme.name << " " << parameter.name;
    }
  }
}

TEST(EveryScheme, gives_all_ranks_the_same_at_any_size) {
  for (const auto& scheme : schemes())
    for (const int size : {1, 2, 3, 4, 5, 7, 8})
      for (const std::size_t elements :
           {std::size_t{0}, std::size_t{1}, static_cast<std::size_t>(size - 1),
            static_cast<std::size_t>(size), std::size_t{1000}}) {
        std::vector<TensorSpec> layout;
        if (elements > 0) layout = {{"w", {elements}}};
        const auto steps =
            run_scheme({.scheme = scheme.name, .layout = layout, .size = size, .steps = 2});
        EXPECT_TRUE(test::ranks_agree(steps)) << scheme.name << " " << size << " " << elements;
        for (const auto& ranks : steps)
          for (const auto& one : ranks)
            EXPECT_EQ(one.report.items, ranks[0].report.items) << scheme.name;
      }
}

TEST(EveryScheme, makes_zeros_of_zeros) {
  for (const auto& scheme : schemes()) {
    const auto steps = run_scheme(
        {.scheme = scheme.name, .layout = kLayout, .size = 3, .steps = 2, .gradient = [](int, int) {
           return std::vector<float>(kElements);
         }});
    for (const auto& one : steps[1]) {
      EXPECT_EQ(one.result, std::vector<float>(kElements)) << scheme.name;
      EXPECT_EQ(one.kept, std::vector<float>(kElements)) << scheme.name;
    }
  }
}

TEST(EveryScheme, works_over_sockets) {
  for (const auto& scheme : schemes()) {
    test::SchemeRun run{
        .scheme = scheme.name,
        .layout = kLayout,
        .size = 3,
        .steps = 2,
        .gradient = [](int rank, int step) { return test::exact_gradient(kElements, rank, step); }};
    const auto near = run_scheme(run);
    run.tcp = true;
    const auto far = run_scheme(run);
    EXPECT_TRUE(test::ranks_agree(far)) << scheme.name;
    // Allreduces may add in another order; nothing else may differ.
    const bool ordered =
        scheme.name != "fp16" && scheme.name != "bf16" && scheme.name != "powersgd";
    EXPECT_TRUE(!ordered || near[1][0].result == far[1][0].result) << scheme.name;
  }
}

// The second step has something bad, on one rank only.
std::vector<float> with_bad(int rank, int step, float bad) {
  auto values = test::gradient(kElements, rank, static_cast<unsigned>(step));
  if (rank == 1 && step == 1) values[77] = bad;
  return values;
}

constexpr float kBad[] = {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()};

bool finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

TEST(EveryScheme, propagates_what_is_not_finite_and_keeps_none_of_it) {
  for (const auto& scheme : schemes())
    for (const float bad : kBad) {
      const auto steps =
          run_scheme({.scheme = scheme.name,
                      .layout = kLayout,
                      .options = {.density = 0.05},
                      .size = 3,
                      .steps = 3,
                      .gradient = [&](int rank, int step) { return with_bad(rank, step, bad); }});
      for (const auto& one : steps[1]) {
        EXPECT_FALSE(std::isfinite(one.result[77])) << scheme.name << " " << bad;
        EXPECT_TRUE(finite(one.kept)) << scheme.name << " " << bad;
      }
      for (const auto& one : steps[2]) EXPECT_TRUE(finite(one.result)) << scheme.name << " " << bad;
    }
}

TEST(EveryScheme, skips_the_step_on_all_ranks) {
  for (const auto& scheme : schemes())
    for (const float bad : kBad) {
      const auto steps =
          run_scheme({.scheme = scheme.name,
                      .layout = kLayout,
                      .options = {.density = 0.05, .non_finite = NonFinite::skip},
                      .size = 3,
                      .steps = 3,
                      .gradient = [&](int rank, int step) { return with_bad(rank, step, bad); }});
      for (std::size_t rank = 0; rank < 3; ++rank) {
        EXPECT_TRUE(steps[1][rank].report.skipped) << scheme.name << " " << bad;
        EXPECT_EQ(steps[1][rank].result, std::vector<float>(kElements)) << scheme.name;
        EXPECT_EQ(steps[1][rank].kept, steps[0][rank].kept) << scheme.name;
        EXPECT_FALSE(steps[2][rank].report.skipped) << scheme.name;
        EXPECT_TRUE(finite(steps[2][rank].result)) << scheme.name;
      }
    }
}

TEST(EveryScheme, throws_on_all_ranks_when_that_is_asked) {
  for (const auto& scheme : schemes()) {
    const auto errors = test::try_local(3, [&](Communicator& communicator) {
      Compressor compressor(communicator, scheme, kLayout, {.non_finite = NonFinite::error});
      for (int step = 0; step < 2; ++step) {
        auto gradient = with_bad(communicator.rank(), step, kBad[0]);
        compressor.allreduce(gradient);
      }
    });
    for (const auto& error : errors) {
      ASSERT_TRUE(error.has_value()) << scheme.name;
      EXPECT_EQ(error->code(), Errc::invalid_argument) << scheme.name << ": " << error->what();
    }
  }
}

// A rank that gives up: the others fail, and have lost nothing of what came in.
TEST(EveryScheme, that_keeps_something_keeps_all_when_a_rank_is_lost) {
  for (const auto& scheme : schemes()) {
    if (!scheme.feedback) continue;
    CompressionOptions options{.density = 0.05};
    if (scheme.name == "dgc")
      options.parameters["momentum"] = 0;  // else more than gradients comes in
    std::vector<std::string> faults(3);
    test::try_local(3,
                    [&](Communicator& communicator) {
                      Compressor compressor(communicator, scheme, kLayout, options);
                      auto gradient = test::gradient(kElements, communicator.rank(), 0);
                      compressor.allreduce(gradient);
                      if (communicator.rank() == 1) return;
                      auto expected = gradient = test::gradient(kElements, communicator.rank(), 1);
                      const auto kept = compressor.feedback().kept();
                      for (std::size_t i = 0; i < kept.size(); ++i) expected[i] += kept[i];
                      auto& fault = faults[static_cast<std::size_t>(communicator.rank())];
                      try {
                        compressor.allreduce(gradient);
                        fault = "no error";
                      } catch (const Error&) {
                        const auto now = compressor.feedback().kept();
                        if (!std::equal(now.begin(), now.end(), expected.begin()))
                          fault = "a gradient is lost";
                      }
                    },
                    {.options = {.timeout = std::chrono::seconds(10)}});
    for (const auto& fault : faults) EXPECT_EQ(fault, "") << scheme.name;
  }
}

// Two steps, a restart, two more: the same bits as four steps.
TEST(EveryScheme, goes_on_after_a_restart_as_if_nothing_had_been) {
  for (const auto& scheme : schemes()) {
    const CompressionOptions options{.density = 0.05};
    const auto whole = run_scheme(
        {.scheme = scheme.name, .layout = kLayout, .options = options, .size = 3, .steps = 4});
    std::vector<std::vector<float>> last(3);
    test::on_local(3, [&](Communicator& communicator) {
      State state;
      const auto run = [&](Compressor& compressor, unsigned step) {
        auto gradient = test::gradient(kElements, communicator.rank(), step);
        compressor.allreduce(gradient);
        return gradient;
      };
      {
        Compressor before(communicator, scheme, kLayout, options);
        run(before, 0);
        run(before, 1);
        before.save(state);
      }
      Compressor after(communicator, scheme, kLayout, options);
      after.load(state);
      run(after, 2);
      last[static_cast<std::size_t>(communicator.rank())] = run(after, 3);
    });
    for (std::size_t rank = 0; rank < 3; ++rank)
      EXPECT_EQ(last[rank], whole[3][rank].result) << scheme.name;
  }
}

}  // namespace
}  // namespace sinew
