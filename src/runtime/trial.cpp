#include "runtime/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include <sinew/error.hpp>
#include "transport/descriptor.hpp"

namespace sinew {
namespace {

constexpr int kInARow = 4;  // calls of one side, at most

}  // namespace

int checked_trial_calls(int calls, std::string_view whose) {
  if (calls == 1)
    throw Error(Errc::invalid_argument,
                fmt::format("{}=1: two algorithms take turns, so that a trial needs 2 calls or "
                            "more (0: no trial)",
                            whose));
  if (calls < 0 || calls > kMostTrialCalls)
    throw Error(Errc::invalid_argument,
                fmt::format("{}={} is not between 0 and {}", whose, calls, kMostTrialCalls));
  return calls;
}

Trial::Trial(std::span<const Algorithm* const> sides, int calls, const OpDescriptor& kind)
    : count_(std::min(sides.size(), kMostTried)), calls_(calls), exchange_(kind) {
  std::copy_n(sides.begin(), count_, sides_.begin());
  // Every side has its turn at least twice.
  block_ = std::clamp(calls / (2 * static_cast<int>(count_)), 1, kInARow);
  exchange_.algorithm = 0;  // of all of them
  exchange_.tag = kTrialTag;
  begin_again();
}

void Trial::begin_again() {
  phase_ = Phase::turns;
  taken_ = 0;
  times_ = {};
  for (auto& times : took_ns_) {
    times.clear();
    times.reserve(static_cast<std::size_t>(calls_) / count_ + kInARow);  // a copy has no room
  }
}

void Trial::take_turn() noexcept {
  if (++taken_ == calls_) phase_ = Phase::asks;
}

void Trial::took(int side, std::chrono::nanoseconds time) noexcept {
  auto& times = took_ns_[static_cast<std::size_t>(side)];
  if (times.size() < times.capacity())
    times.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0)));
}

// Calls that overlap are short and long by turns: only several in a row tell what one takes, and to
// leave out the longest of them would be to believe the short ones. But in the longest turns
// something happened that has nothing to do with them.
void Trial::fill_times() noexcept {
  const auto in_a_row = static_cast<std::size_t>(std::max(1, block_ - 1));  // that are timed
  for (std::size_t side = 0; side < count_; ++side) {
    auto& times = took_ns_[side];
    const auto turns = times.size() / in_a_row;
    if (turns == 0) continue;
    for (std::size_t turn = 0; turn < turns; ++turn) {
      const auto first = times.begin() + static_cast<std::ptrdiff_t>(turn * in_a_row);
      times[turn] =
          std::accumulate(first, first + static_cast<std::ptrdiff_t>(in_a_row), std::uint64_t{0}) /
          in_a_row;
    }
    times.resize(turns);
    std::sort(times.begin(), times.end());
    const auto counted = turns - (turns + 2) / 4;
    times_[side] =
        std::accumulate(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(counted),
                        std::uint64_t{0}) /
        counted;
  }
}

void Trial::judge() noexcept {
  const auto times = std::span(times_).first(count_);
  winner_ = static_cast<int>(std::min_element(times.begin(), times.end()) - times.begin());
  // Less than a tenth is no verdict: two trials of the same two differ by as much.
  if (*std::min_element(times.begin(), times.end()) * 10 > times.front() * 9) winner_ = 0;
  judged_ = times_;
  phase_ = Phase::over;
}

double Trial::measured_us(std::string_view algorithm) const noexcept {
  for (std::size_t side = 0; side < count_; ++side)
    if (sides_[side] != nullptr && sides_[side]->name == algorithm)
      return static_cast<double>(judged_[side]) / 1e3;
  return 0;
}

}  // namespace sinew
