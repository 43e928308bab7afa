// Samples that were expected, that were not, and that cannot be had.
#include "train/prefetch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <sinew/error.hpp>

namespace sinew {
namespace {

/// Counts who asked; sample 99 cannot be read.
class Counting final : public Dataset {
 public:
  explicit Counting(std::atomic<int>& in_other_threads) : in_other_threads_(in_other_threads) {}
  [[nodiscard]] std::size_t samples() const noexcept override { return 100; }
  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept override { return kShape; }
  [[nodiscard]] int classes() const noexcept override { return 1; }
  void fill(std::span<const std::uint32_t> which, Batch& into) const override {
    if (std::this_thread::get_id() != owner_) ++in_other_threads_;
    if (!which.empty() && which[0] == 99) throw Error(Errc::system, "cannot read sample 99");
    into.shape = {static_cast<std::int64_t>(which.size())};
    into.inputs.assign(which.begin(), which.end());
  }

 private:
  static constexpr std::int64_t kShape[] = {1};
  std::atomic<int>& in_other_threads_;
  std::thread::id owner_ = std::this_thread::get_id();
};

TEST(Prefetched, hands_over_what_was_expected_and_makes_what_was_not) {
  std::atomic<int> ahead = 0;
  const Prefetched data(std::make_unique<Counting>(ahead));
  Batch batch;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::uint32_t now[] = {i % 50, i % 7}, next[] = {(i + 1) % 50, (i + 1) % 7};
    data.fill(now, batch);
    EXPECT_EQ(batch.inputs, (std::vector<float>{float(i % 50), float(i % 7)}));
    data.expect(next);
    if (i % 10 == 9) data.expect(now);  // another mind: the next fill is none of these
  }
  const std::uint32_t last[] = {199 % 50, 199 % 7};
  data.fill(last, batch);  // it waits for what is under way
  EXPECT_EQ(ahead, 220);
}

TEST(Prefetched, passes_on_what_went_wrong_when_the_samples_are_asked_for) {
  std::atomic<int> ahead = 0;
  const Prefetched data(std::make_unique<Counting>(ahead));
  Batch batch;
  const std::uint32_t bad[] = {99}, good[] = {1};
  data.expect(bad);
  EXPECT_THROW(data.fill(bad, batch), Error);
  data.expect(bad);
  data.fill(good, batch);
  EXPECT_EQ(batch.inputs, std::vector<float>{1});
  data.expect(good);  // and is left behind
}

}  // namespace
}  // namespace sinew
