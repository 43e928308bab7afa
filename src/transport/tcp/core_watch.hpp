// Who had our core while we yielded it: ranks that wait as we do, a rank that computes, or a
// stranger.
//
// A yield to ranks that wait is short. One to a rank that computes takes as long as ranks compute,
// and ranks of one job do alike: what this rank has spent elsewhere between operations is what
// others may. That is a guess, so it excuses twice as much in a wait and no more; the rest is a
// stranger's.
#pragma once

#include <algorithm>

#include <sinew/transport.hpp>

namespace sinew::tcp {

class CoreWatch {
 public:
  explicit CoreWatch(Clock::time_point now) noexcept : last_seen_(now) {}

  /// An operation begins. The longest absence of some operations counts, because a step of training
  /// may have many operations and one computation.
  void operation_begins(Clock::time_point now) noexcept {
    elsewhere_ =
        std::max(std::min(now - last_seen_, kLongestAbsence), elsewhere_ - elsewhere_ / kForgets);
  }
  /// This rank waits, or has just waited.
  void is_here(Clock::time_point now) noexcept { last_seen_ = now; }
  /// Back from a yield. True: in this wait a stranger has had the core.
  [[nodiscard]] bool meets_stranger(Clock::time_point before, Clock::time_point now) noexcept {
    last_seen_ = now;
    if (now - before <= kLongYield) return false;
    away_ += now - before;
    return away_ > 2 * elsewhere_;
  }
  void wait_is_over() noexcept { away_ = {}; }

 private:
  static constexpr Clock::duration kLongYield = std::chrono::microseconds(300);
  static constexpr Clock::duration kLongestAbsence = std::chrono::milliseconds(10);
  static constexpr int kForgets = 64;  // operations, about

  Clock::time_point last_seen_;
  Clock::duration elsewhere_{};  // between operations, lately
  Clock::duration away_{};       // in long yields of this wait
};

}  // namespace sinew::tcp
