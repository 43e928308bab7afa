#include "transport/tcp/waiter.hpp"

#include <ctime>

namespace sinew::tcp {

bool Waiter::sees_any() noexcept {
  const auto entries = fill_entries();
  return poll(entries_.data() + 1, entries - 1, 0) > 0;
}

void Waiter::look() noexcept {
  // A single gate is cheapest tried by whoever wants to pass.
  if (count_ == 1) {
    waiting_[0]->shut = false;
  } else if (count_ > 1) {
    const auto entries = fill_entries();
    if (poll(entries_.data() + 1, entries - 1, 0) > 0) open_ready();
  }
  next_round();
}

bool Waiter::sleep(std::chrono::nanoseconds most) noexcept {
  const auto entries = fill_entries();
  const timespec limit{most.count() / 1'000'000'000, most.count() % 1'000'000'000};
  const bool woken = ppoll(entries_.data(), entries, &limit, nullptr) > 0;
  if (woken) open_ready();
  const bool news = woken && entries_[0].revents != 0;
  next_round();
  return news;
}

std::size_t Waiter::fill_entries() noexcept {
  entries_[0] = {control_, POLLIN, 0};
  for (std::size_t i = 0; i < count_; ++i)
    entries_[i + 1] = {waiting_[i]->descriptor, waiting_[i]->events, 0};
  return count_ + 1;
}

void Waiter::open_ready() noexcept {
  for (std::size_t i = 0; i < count_; ++i)
    if (entries_[i + 1].revents != 0) waiting_[i]->shut = false;
}

}  // namespace sinew::tcp
