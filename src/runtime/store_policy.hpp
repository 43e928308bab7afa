// How a rank writes its shared slots: with ordinary stores, or past the caches.
//
// Where cores share a cache, ordinary stores win: readers find the data there. Where they do not,
// every line written must first be called back from the reader's cache, and writing past the caches
// is several times faster. In between lies what a fold writes to a slot while it writes its own
// output, too: the stores of both wait for each other, and reading from memory may cost less.
// Virtual machines move between modes within seconds, so the policy keeps measuring: it uses what
// was fastest lately, and tries the others now and then: less often in long runs, where another
// way may take several times as long. What it chooses is this rank's own affair and changes no
// result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace sinew {

/// Which of its stores to slots a rank sends past the caches.
enum class PastCaches : std::uint8_t {
  none,
  all,
  results,  // those of results that a fold stores elsewhere, too
};

class StorePolicy {
 public:
  /// The next runs have so many passes, and there may be folds that store a result twice: both
  /// alike on all ranks.
  void expect(std::uint32_t passes, bool may_store_results_twice) noexcept {
    try_every_ = passes < kLongPasses ? kTryEvery : kTryLongEvery;
    ways_ = may_store_results_twice ? 3 : 2;
  }
  /// What was measured may be true no more.
  void forget() noexcept {
    std::fill(std::begin(time_ns_), std::end(time_ns_), 0);
    runs_ = 0;
  }
  /// What to write past the caches in the next run.
  [[nodiscard]] PastCaches next() noexcept {
    ++runs_;
    // What is tried depends on the number of the run, which is the same on all ranks. If each tried
    // the opposite of its own choice, two that chose apart would swap, find that as slow, and never
    // see what all of them could have together.
    if (runs_ <= kFirst)
      way_ = (runs_ - 1) % ways_;
    else if (runs_ % try_every_ == 0)
      way_ = (runs_ / try_every_ - 1) % ways_;
    else
      way_ = best_ = best();
    return static_cast<PastCaches>(way_);
  }
  /// Whether to say how long that run takes. Short ones are asked only some times in a row: reading
  /// the clock would be a good part of them.
  [[nodiscard]] bool measures() const noexcept {
    return runs_ <= kFirst || runs_ % try_every_ < kInARow || time_ns_[0] > kLongNs;
  }
  /// How long it took.
  void took(std::uint64_t nanoseconds) noexcept {
    auto& mean = time_ns_[way_];
    const auto now = static_cast<double>(nanoseconds);
    // Falls at once, rises slowly: a run that was interrupted, or that found nothing in the caches,
    // says little about how it was written, however long it took. Little of a long run is that.
    const double most = (try_every_ == kTryEvery ? 0.25 : 4) * mean;
    mean = mean == 0 || now < mean ? now : mean + std::min(now - mean, most) / 8;
  }

 private:
  // What is not used was last measured in its best moments, and what is used in all of them: only
  // what is faster by more than that may take its place.
  [[nodiscard]] std::uint32_t best() const noexcept {
    const auto* const fastest = std::min_element(time_ns_, time_ns_ + ways_);
    const bool clearly = *fastest < kClearly * time_ns_[best_];
    return clearly ? static_cast<std::uint32_t>(std::distance(time_ns_, fastest)) : best_;
  }

  static constexpr double kClearly = 0.95;
  static constexpr std::uint32_t kFirst = 6, kTryEvery = 64, kInARow = 8;
  static constexpr std::uint32_t kLongPasses = 8, kTryLongEvery = 256;
  static constexpr double kLongNs = 50'000;
  double time_ns_[3] = {0, 0, 0};  // of each way, lately
  std::uint32_t ways_ = 2, way_ = 0, best_ = 0;
  std::uint32_t try_every_ = kTryEvery;
  std::uint32_t runs_ = 0;
};

}  // namespace sinew
