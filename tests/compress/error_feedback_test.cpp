// The container that keeps what is not sent: transactions, saving, and other buckets.
#include <gtest/gtest.h>

#include <numeric>

#include <sinew/compression.hpp>

namespace sinew {
namespace {

using Keep = ErrorFeedback::Keep;

std::vector<float> kept(const ErrorFeedback& feedback) {
  return {feedback.kept().begin(), feedback.kept().end()};
}

std::vector<float> ramp(std::size_t elements, float first) {
  std::vector<float> values(elements);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(ErrorFeedback, what_is_not_taken_is_added_to_the_next_gradient) {
  ErrorFeedback feedback({{"w", {4}}});
  feedback.accumulate(ramp(4, 1));
  const std::uint32_t sent[] = {1, 3};
  feedback.take(sent);
  feedback.commit();
  EXPECT_EQ(kept(feedback), (std::vector<float>{1, 0, 3, 0}));
  const auto sum = feedback.accumulate(ramp(4, 10));
  EXPECT_EQ(std::vector<float>(sum.begin(), sum.end()), (std::vector<float>{11, 11, 15, 13}));
}

// Taken elements become 0 late; nobody may ever see that.
TEST(ErrorFeedback, what_was_taken_is_gone_for_whoever_looks) {
  using Undo = ErrorFeedback::Undo;
  for (const auto undo : {Undo::no, Undo::yes})
    for (const auto& sent : {std::vector<std::uint32_t>{1, 3}, std::vector<std::uint32_t>{3, 1}}) {
      ErrorFeedback feedback({{"w", {4}}}, undo);
      feedback.accumulate(ramp(4, 1));
      feedback.take(sent);
      feedback.take(std::vector<std::uint32_t>{0});
      const auto pending = feedback.pending();
      EXPECT_EQ(std::vector<float>(pending.begin(), pending.end()),
                (std::vector<float>{0, 0, 3, 0}));
      feedback.take(std::vector<std::uint32_t>{2});
      feedback.commit();
      const auto sum = feedback.accumulate(ramp(4, 10));  // nobody has looked
      EXPECT_EQ(std::vector<float>(sum.begin(), sum.end()), ramp(4, 10));
      feedback.take(sent);
      feedback.commit();
      const auto [before, gone, into] = feedback.begin();
      EXPECT_EQ(std::vector<float>(before.begin(), before.end()), ramp(4, 10));
      EXPECT_EQ(std::vector(gone.begin(), gone.end()), std::vector<std::uint64_t>{0b1010});
      std::fill(into.begin(), into.end(), 5.0F);
      feedback.commit();
      EXPECT_EQ(kept(feedback), std::vector<float>(4, 5.0F));
    }
}

TEST(ErrorFeedback, a_forgotten_step_takes_nothing_out) {
  ErrorFeedback feedback({{"w", {3}}});
  feedback.accumulate(ramp(3, 1));
  feedback.commit();
  feedback.accumulate(ramp(3, 100));
  feedback.take(std::vector<std::uint32_t>{0, 2});
  feedback.roll_back(Keep::before);
  EXPECT_EQ(kept(feedback), ramp(3, 1));
}

TEST(ErrorFeedback, keeps_the_past_until_commit) {
  ErrorFeedback feedback({{"w", {3}}});
  feedback.accumulate(ramp(3, 1));
  feedback.commit();
  feedback.accumulate(ramp(3, 100));
  EXPECT_EQ(kept(feedback), ramp(3, 1));
  feedback.roll_back(Keep::before);
  EXPECT_EQ(kept(feedback), ramp(3, 1));
}

TEST(ErrorFeedback, a_failed_exchange_loses_no_gradient) {
  ErrorFeedback feedback({{"w", {3}}});
  feedback.accumulate(ramp(3, 1));
  feedback.commit();
  feedback.accumulate(ramp(3, 100));
  feedback.roll_back(Keep::all);
  EXPECT_EQ(kept(feedback), (std::vector<float>{101, 103, 105}));
  feedback.roll_back(Keep::all);  // outside a step it does nothing
  EXPECT_EQ(kept(feedback), (std::vector<float>{101, 103, 105}));
}

TEST(ErrorFeedback, other_buckets_of_the_same_tensors_keep_their_residuals) {
  ErrorFeedback one({{"a", {2}}, {"b", {1, 3}}}), two({{"c", {2}}});
  one.accumulate(ramp(5, 1));
  one.commit();
  two.accumulate(ramp(2, 10));
  two.commit();
  State state;
  one.save(state);
  two.save(state);
  ErrorFeedback merged({{"c", {2}}, {"a", {2}}, {"b", {1, 3}}});
  merged.load(state);
  EXPECT_EQ(kept(merged), (std::vector<float>{10, 11, 1, 2, 3, 4, 5}));
}

// What the replaced steps took must not be taken out of what was loaded.
TEST(ErrorFeedback, loading_replaces_whatever_was_there) {
  using Undo = ErrorFeedback::Undo;
  State state;
  state.put("residual/w", std::span<const float>(ramp(3, 7)));
  for (const auto undo : {Undo::no, Undo::yes}) {
    ErrorFeedback feedback({{"w", {3}}}, undo);
    feedback.accumulate(ramp(3, 1));
    feedback.take(std::vector<std::uint32_t>{0, 2});
    feedback.commit();
    feedback.load(state);
    const auto sum = feedback.accumulate(ramp(3, 1));
    EXPECT_EQ(std::vector<float>(sum.begin(), sum.end()), (std::vector<float>{8, 10, 12}));
    for (const bool loads : {true, false}) {  // in the middle of a step, too
      feedback.take(std::vector<std::uint32_t>{1});
      if (loads) feedback.load(state);
      if (!loads) feedback.clear();
      EXPECT_EQ(kept(feedback), loads ? ramp(3, 7) : std::vector<float>(3, 0));
      feedback.accumulate(ramp(3, 1));
    }
  }
}

TEST(ErrorFeedback, loading_what_does_not_fit_says_so_and_changes_nothing) {
  ErrorFeedback feedback({{"a", {2}}, {"b", {2}}});
  feedback.accumulate(ramp(4, 1));
  feedback.commit();
  State state;
  state.put("residual/a", std::span<const float>(ramp(2, 7)));
  const auto message = [&] {
    try {
      feedback.load(state);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("loaded");
  };
  EXPECT_EQ(message(), "no residual was saved for tensor 'b'");
  state.put("residual/b", std::span<const float>(ramp(3, 7)));
  EXPECT_EQ(message(), "the saved residual of 'b' has 3 elements, the tensor 2");
  state.put("residual/b", std::span<const double>());
  EXPECT_EQ(message(), "'residual/b' was saved as 0 bytes of f64, not of f32");
  EXPECT_EQ(kept(feedback), ramp(4, 1));
}

TEST(ErrorFeedback, refuses_layouts_it_could_not_save) {
  EXPECT_THROW(ErrorFeedback({{"a", {2}}, {"a", {3}}}), Error);
  EXPECT_THROW(ErrorFeedback({{"a", {2, 0}}}), Error);
  EXPECT_THROW(ErrorFeedback({{"a", {2}}}).accumulate(ramp(3, 0)), Error);
  EXPECT_THROW(ErrorFeedback({{"a", {2}}}).commit(), Error);
}

}  // namespace
}  // namespace sinew
