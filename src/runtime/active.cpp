#include "runtime/active.hpp"

#include <utility>

namespace sinew {

void Active::begin_role(Clock::time_point now) noexcept {
  // How slots are best written was found out some thousands of calls ago, if at all.
  if (is_first_turn) planned->plan.stores.forget();
  if (role == TrialRole::turn) come_in(now);
  if (role == TrialRole::exchange) trial->fill_times();
  if (role != TrialRole::waits) return;
  planned = std::exchange(choices[static_cast<std::size_t>(trial->winning_side())], nullptr);
  for (auto& other : choices)
    if (other != nullptr) --std::exchange(other, nullptr)->users;
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
