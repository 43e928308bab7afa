// A short trial of a few algorithms for one kind of call: whose turn it is, what each took, and
// which is the fastest by what all ranks measured. Bookkeeping only: it runs nothing and reads no
// clock.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <sinew/algorithms.hpp>
#include <sinew/transport.hpp>

namespace sinew {

/// Most calls of a trial that can be asked for.
inline constexpr int kMostTrialCalls = 10'000;
/// Calls of a trial that nobody asked for, because no bit of a result depends on it.
inline constexpr int kNeutralTrialCalls = 36;
/// After how many calls of a communicator, for each kind that it has tried, such trials begin
/// again.
inline constexpr std::uint32_t kTrialsAgainEvery = 8192;
/// Most algorithms in a trial.
inline constexpr std::size_t kMostTried = 3;

/// The number, if that many calls make a trial (0 make none). Throws Error{invalid_argument} that
/// begins with `whose`.
int checked_trial_calls(int calls, std::string_view whose);

/// One kind of call. Everything but what took() is told happens at the same call on all ranks, so
/// that nothing here may depend on what a rank has for itself until the times of all are known.
class Trial {
 public:
  /// Nothing to try: over from the beginning. Null where no algorithm fits.
  explicit Trial(const Algorithm* only) noexcept : sides_{only}, phase_(Phase::over) {}
  /// Two or more, the fastest first, as predicted. `kind` is what ranks compare about such calls.
  Trial(std::span<const Algorithm* const> sides, int calls, const OpDescriptor& kind);

  [[nodiscard]] bool is_over() const noexcept { return phase_ == Phase::over; }
  /// The same once more. What was measured last stands until this is judged.
  void begin_again();

  /// Whether calls still take turns.
  [[nodiscard]] bool has_turns() const noexcept { return phase_ == Phase::turns; }
  /// How many take part.
  [[nodiscard]] std::size_t sides() const noexcept { return count_; }
  /// Which of them the next call uses. In a long trial each has several calls in a row, because an
  /// algorithm that repeats itself finds its memory otherwise than one that follows another.
  [[nodiscard]] int turn() const noexcept { return taken_ / block_ % static_cast<int>(count_); }
  /// Whether that call is to be timed. Not the first of several in a row, nor those of the first
  /// turns: memory is new to them, and they find out how to write it.
  [[nodiscard]] bool turn_counts() const noexcept {
    return block_ == 1 || (taken_ % block_ != 0 && taken_ >= block_ * static_cast<int>(count_));
  }
  /// Whether that algorithm has had no call before.
  [[nodiscard]] bool turn_is_first() const noexcept {
    return has_turns() && taken_ % block_ == 0 && taken_ < block_ * static_cast<int>(count_);
  }
  /// A call has been started with that one.
  void take_turn() noexcept;
  /// Such a call is done. Allocates nothing.
  void took(int side, std::chrono::nanoseconds time) noexcept;

  /// Whether nobody has asked the others yet; that is to be done before the next call.
  [[nodiscard]] bool wants_to_ask() const noexcept { return phase_ == Phase::asks; }
  void ask() noexcept { phase_ = Phase::waits; }
  /// Whether they have been asked, so that nothing of it is left to be started.
  [[nodiscard]] bool has_asked() const noexcept { return phase_ >= Phase::waits; }
  /// How the exchange of times is announced: as the end of what these calls began.
  [[nodiscard]] const OpDescriptor& exchange() const noexcept { return exchange_; }
  /// What is exchanged: this rank's means without the longest quarter of turns, once all are done;
  /// then the largest of all ranks.
  [[nodiscard]] std::span<std::uint64_t, kMostTried> times() noexcept { return times_; }
  void fill_times() noexcept;
  /// The times are everybody's: which is the fastest. The one predicted so, if no other was faster
  /// by a tenth.
  void judge() noexcept;

  [[nodiscard]] const Algorithm& side(int which) const noexcept {
    return *sides_[static_cast<std::size_t>(which)];
  }
  /// Of a trial that is over, or was before it began again.
  [[nodiscard]] int winning_side() const noexcept { return winner_; }
  [[nodiscard]] const Algorithm* winner() const noexcept {
    return sides_[static_cast<std::size_t>(winner_)];
  }
  /// What the slowest rank's mean was when it was last over; 0: it never was, or without this.
  [[nodiscard]] double measured_us(std::string_view algorithm) const noexcept;

 private:
  enum class Phase : std::uint8_t { turns, asks, waits, over };

  std::array<const Algorithm*, kMostTried> sides_{};
  std::size_t count_ = 1;
  Phase phase_ = Phase::turns;
  int calls_ = 0;
  int block_ = 1;  // calls in a row
  int taken_ = 0;
  int winner_ = 0;
  std::array<std::uint64_t, kMostTried> judged_{};  // the times that made it the winner
  std::array<std::vector<std::uint64_t>, kMostTried> took_ns_;
  std::array<std::uint64_t, kMostTried> times_{};
  OpDescriptor exchange_{};
};

}  // namespace sinew
