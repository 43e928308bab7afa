// How a rank writes its shared slots: with ordinary stores, or past the caches.
//
// Where cores share a cache, ordinary stores win: readers find the data there. Where they do not,
// every line written must first be called back from the reader's cache, and writing past the caches
// is several times faster. Virtual machines move between the two within seconds, so the policy
// keeps measuring: it uses what was faster lately, and tries the other now and then: less often in
// long runs, where the other may take several times as long. What it chooses is this rank's own
// affair and changes no result.
#pragma once

#include <cstdint>

namespace sinew {

class StorePolicy {
 public:
  /// The next runs have so many passes, as many on all ranks.
  void expect(std::uint32_t passes) noexcept {
    try_every_ = passes < kLongPasses ? kTryEvery : kTryLongEvery;
  }
  /// Which way to write in the next run.
  [[nodiscard]] bool streams() noexcept {
    ++runs_;
    const bool best = time_ns_[1] < time_ns_[0];
    // What is tried depends on the number of the run, which is the same on all ranks. If each tried
    // the opposite of its own choice, two that chose apart would swap, find that as slow, and never
    // see what all of them could have together.
    if (runs_ <= kFirst)
      streams_ = runs_ % 2 == 0;
    else
      streams_ = runs_ % try_every_ == 0 ? runs_ / try_every_ % 2 == 0 : best;
    return streams_;
  }
  /// Whether to say how long that run takes. Short ones are asked only some times in a row: reading
  /// the clock would be a good part of them.
  [[nodiscard]] bool measures() const noexcept {
    return runs_ <= kFirst || runs_ % try_every_ < kInARow || time_ns_[0] > kLongNs;
  }
  /// How long it took.
  void took(std::uint64_t nanoseconds) noexcept {
    auto& mean = time_ns_[streams_ ? 1 : 0];
    const auto now = static_cast<double>(nanoseconds);
    // Falls at once, rises slowly: a run that was interrupted says little about how it was written.
    mean = mean == 0 || now < mean ? now : mean + (now - mean) / 8;
  }

 private:
  static constexpr std::uint32_t kFirst = 6, kTryEvery = 64, kInARow = 8;
  static constexpr std::uint32_t kLongPasses = 8, kTryLongEvery = 256;
  static constexpr double kLongNs = 5000;
  double time_ns_[2] = {0, 0};  // lately, with ordinary and with streaming stores
  std::uint32_t try_every_ = kTryEvery;
  std::uint32_t runs_ = 0;
  bool streams_ = false;
};

}  // namespace sinew
