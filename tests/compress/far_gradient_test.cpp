// Gradients that stay where they are: the same bits as those on the host, in every kind of step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "kernel/top_k.hpp"
#include "support/gradients.hpp"
#include "support/local_ranks.hpp"

namespace sinew {
namespace {

using test::difference;

/// Far away in name only: plain vectors.
class Elsewhere final : public FarGradient {
 public:
  std::vector<float> gradient, kept;

  [[nodiscard]] std::size_t elements() const override { return gradient.size(); }
  Chosen choose(std::uint64_t most) override {
    ++chosen_;
    begin();
    top_.emplace(sum_.size(), most);
    const auto chosen = top_->choose(sum_);
    return {{chosen.indices, chosen.values}, chosen.finite};
  }
  std::span<float> fetch() override {
    ++fetched_;
    begin();
    host_ = sum_;
    return host_;
  }
  void take(std::span<const std::uint32_t> indices) override {
    for (const auto index : indices) sum_[index] = 0;
  }
  void commit(const Items& result) override {
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    for (std::size_t i = 0; i < result.indices.size(); ++i)
      gradient[result.indices[i]] = result.values[i];
    kept = std::exchange(sum_, {});
  }
  void store() override {
    gradient = host_;
    kept.clear();
    sum_.clear();
  }
  void roll_back(ErrorFeedback::Keep keep) override {
    if (!sum_.empty() && keep == ErrorFeedback::Keep::all) kept = sum_;
    sum_.clear();
  }
  void clear_gradient() override { std::fill(gradient.begin(), gradient.end(), 0.0F); }
  void keep(std::span<const float> from) override { kept.assign(from.begin(), from.end()); }

  [[nodiscard]] int chosen() const { return chosen_; }
  [[nodiscard]] int fetched() const { return fetched_; }

 private:
  void begin() {
    if (!sum_.empty()) return;
    sum_ = gradient;
    kept.resize(gradient.size());  // -0 + 0 is 0
    for (std::size_t i = 0; i < kept.size(); ++i) sum_[i] += kept[i];
  }
  std::vector<float> sum_, host_;
  std::optional<TopK> top_;
  int chosen_ = 0, fetched_ = 0;
};

constexpr std::size_t kElements = 3000;
constexpr std::uint64_t kSteps = 6, kBadStep = 4;

std::vector<float> or_zeros(std::span<const float> values) {
  std::vector<float> all(values.begin(), values.end());
  all.resize(kElements);
  return all;
}

std::string compare(Communicator& communicator, const CompressionOptions& options, bool with_nan) {
  Compressor near(communicator, find_scheme("oktopk"), kElements, options);
  Compressor far(communicator, find_scheme("oktopk"), kElements, options);
  Elsewhere elsewhere;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    auto gradient = test::gradient(kElements, communicator.rank(), step);
    if (with_nan && step == kBadStep && communicator.rank() == communicator.size() - 1)
      gradient[17] = std::numeric_limits<float>::quiet_NaN();
    elsewhere.gradient = gradient;
    std::optional<Error> near_error, far_error;
    try {
      near.allreduce(std::span(gradient));
    } catch (const Error& error) {
      near_error = error;
    }
    try {
      far.allreduce(elsewhere);
    } catch (const Error& error) {
      far_error = error;
    }
    if (near_error.has_value() != far_error.has_value()) return "only one of the two threw";
    if (!near_error)
      if (auto fault = difference(gradient, elsewhere.gradient, "result"); !fault.empty())
        return fmt::format("step {}: {}", step, fault);
    if (auto fault =
            difference(or_zeros(near.feedback().kept()), or_zeros(elsewhere.kept), "residual");
        !fault.empty())
      return fmt::format("step {}: {}", step, fault);
  }
  if (elsewhere.chosen() == 0) return "nothing was ever chosen where the gradient is";
  const bool needs_host = options.dense_steps > 0 || with_nan;
  if (!needs_host && elsewhere.fetched() > 0) return "a gradient came to the host";
  return {};
}

TEST(FarGradient, has_the_bits_of_one_on_the_host) {
  for (const int size : {1, 2, 3, 5})
    for (const std::uint64_t dense_steps : {0, 2})
      for (const auto policy : {NonFinite::propagate, NonFinite::skip, NonFinite::error})
        for (const bool with_nan : {false, true}) {
          const CompressionOptions options{
              .density = 0.02, .dense_steps = dense_steps, .non_finite = policy};
          EXPECT_EQ(
              test::on_ranks(size, [&](Communicator& c) { return compare(c, options, with_nan); }),
              "")
              << size << " ranks, " << dense_steps << " dense steps, " << name(policy)
              << (with_nan ? ", with a NaN" : "");
        }
}

TEST(FarGradient, goes_on_from_what_was_saved_on_the_host) {
  EXPECT_EQ(test::on_ranks(3,
                           [](Communicator& c) -> std::string {
                             const auto& scheme = find_scheme("oktopk");
                             Compressor near(c, scheme, kElements, {.density = 0.02});
                             auto gradient = test::gradient(kElements, c.rank(), 0);
                             near.allreduce(std::span(gradient));
                             State state;
                             near.save(state);
                             Compressor far(c, scheme, kElements, {.density = 0.02});
                             far.load(state);
                             Elsewhere elsewhere;
                             gradient = test::gradient(kElements, c.rank(), 1);
                             elsewhere.gradient = gradient;
                             near.allreduce(std::span(gradient));
                             far.allreduce(elsewhere);
                             if (!far.feedback().kept().empty()) return "kept in two places";
                             return difference(gradient, elsewhere.gradient, "result");
                           }),
            "");
}

TEST(FarGradient, is_refused_where_it_cannot_be) {
  EXPECT_EQ(test::on_ranks(
                2,
                [](Communicator& c) -> std::string {
                  Elsewhere elsewhere;
                  elsewhere.gradient.resize(kElements);
                  const auto refused = [&](Compressor compressor, Errc code) {
                    try {
                      compressor.allreduce(elsewhere);
                    } catch (const Error& error) {
                      return error.code() == code;
                    }
                    return false;
                  };
                  if (!refused(Compressor(c, find_scheme("topka"), kElements), Errc::unsupported))
                    return "topka took it";
                  if (!refused(Compressor(c, find_scheme("oktopk"), kElements, {.measure = true}),
                               Errc::unsupported))
                    return "measured without a gradient";
                  if (!refused(Compressor(c, find_scheme("oktopk"), kElements + 1),
                               Errc::invalid_argument))
                    return "one element too few";
                  return {};
                }),
            "");
}

TEST(FarGradient, loses_nothing_when_a_rank_dies) {
  // Rank 1 leaves before the second step: rank 0 keeps all that came in.
  auto errors = test::try_local(2, [](Communicator& c) {
    Compressor compressor(c, find_scheme("oktopk"), kElements, {.density = 0.02});
    Elsewhere elsewhere;
    elsewhere.gradient = test::gradient(kElements, c.rank(), 0);
    compressor.allreduce(elsewhere);
    if (c.rank() == 1) throw Error(Errc::system, "enough");
    const auto kept = elsewhere.kept;
    const auto gradient = elsewhere.gradient = test::gradient(kElements, c.rank(), 1);
    EXPECT_THROW(compressor.allreduce(elsewhere), Error);
    for (std::size_t i = 0; i < kElements; ++i)
      ASSERT_EQ(elsewhere.kept[i], gradient[i] + kept[i]) << i;
  });
  EXPECT_TRUE(errors[1].has_value());
}

}  // namespace
}  // namespace sinew
