#include "transport/tcp/waiter.hpp"

#include <sched.h>

#include <ctime>

namespace sinew::tcp {
namespace {

using namespace std::chrono_literals;

constexpr int kSpins = 200;  // each a call into the kernel: about 50 to 100 us together
constexpr int kYields = 40;
constexpr int kSleepFirst = 1000;  // waits that go straight to sleep after meeting a stranger
constexpr Clock::duration kStranger = 300us;  // a yield that took longer may have met one

}  // namespace

// Trying again is cheapest when whoever we wait for has a core of its own; a yield is cheap when
// the next in line is another rank; sleeping is dear, but the only way past a stranger on our core.
bool Waiter::linger() noexcept {
  ++idle_;
  if (!crowded_ && idle_ <= kSpins) {
    look();
    return true;
  }
  if (!crowded_ || idle_ > kYields || sleep_first_ > 0) return false;
  yield();
  return true;
}

void Waiter::yield() noexcept {
  const auto before = Clock::now();
  sched_yield();
  // The core was away for long, and still nothing has come: it was lent to a stranger.
  if (Clock::now() - before > kStranger && !sees_any()) sleep_first_ = kSleepFirst;
  look();
}

bool Waiter::sees_any() noexcept {
  const auto entries = fill_entries();
  return poll(entries_.data() + kOwn, entries - kOwn, 0) > 0;
}

void Waiter::look() noexcept {
  // A single gate is cheapest tried by whoever wants to pass.
  if (count_ == 1) {
    waiting_[0]->shut = false;
  } else if (count_ > 1) {
    const auto entries = fill_entries();
    if (poll(entries_.data() + kOwn, entries - kOwn, 0) > 0) open_ready();
  }
  next_round();
}

bool Waiter::sleep(std::chrono::nanoseconds most) noexcept {
  if (sleep_first_ > 0) --sleep_first_;
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
  entries_[1] = {other_, POLLIN, 0};
  for (std::size_t i = 0; i < count_; ++i)
    entries_[i + kOwn] = {waiting_[i]->descriptor, waiting_[i]->events, 0};
  return count_ + kOwn;
}

void Waiter::open_ready() noexcept {
  for (std::size_t i = 0; i < count_; ++i)
    if (entries_[i + kOwn].revents != 0) waiting_[i]->shut = false;
}

}  // namespace sinew::tcp
