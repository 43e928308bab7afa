#include "runtime/active.hpp"

#include <utility>

namespace sinew {

void Active::begin_role(Clock::time_point now) noexcept {
  if (role == TrialRole::turn) come_in(now);
  if (role == TrialRole::exchange) trial->fill_times();
  if (role != TrialRole::waits) return;
  if (trial->winning_side() == 1) std::swap(planned, other);
  --std::exchange(other, nullptr)->users;
  run.set(planned->plan, input, output);
  role = TrialRole::none;
}

void Active::end_role(Clock::time_point now) noexcept {
  if (role == TrialRole::exchange) trial->judge();
  if (role != TrialRole::turn) return;
  go_out(now);
  trial->took(side, spent);
}

}  // namespace sinew
