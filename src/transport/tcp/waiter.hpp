// Waiting for sockets: by trying again, by yielding, by sleeping, in this order.
#pragma once

#include <poll.h>

#include <cstdint>
#include <vector>

#include <sinew/transport.hpp>

namespace sinew::tcp {

/// One direction of a connection: open until the kernel says "not now".
struct Gate {
  int descriptor = -1;  // -1: nothing will pass any more, which is for whoever tries to say
  short events = 0;     // POLLIN or POLLOUT
  bool shut = false;
  std::uint32_t asked = 0;  // the round in which somebody last waited for it
};

/// Between two rounds of attempts the waiter finds out, with one call for all, which shut gates are
/// worth trying again. Whoever never comes to wait (but only tests) tries them all the same.
class Waiter {
 public:
  /// `control`: a descriptor that is readable when the control connections have news. `gates`: how
  /// many there are. `crowded`: ranks outnumber cores.
  Waiter(int control, std::size_t gates, bool crowded)
      : control_(control), crowded_(crowded), waiting_(gates, nullptr), entries_(gates + kOwn) {}

  /// Sleeping ends also when this can be read.
  void also_wake_by(int descriptor) noexcept { other_ = descriptor; }

  [[nodiscard]] bool passes(Gate& gate) noexcept {
    if (!gate.shut || gate.asked == round_ || gate.descriptor < 0) return true;
    await(gate);
    return false;
  }
  void shut(Gate& gate) noexcept {
    gate.shut = true;
    if (gate.asked != round_) await(gate);
  }

  /// Something moved: the next round, and no need to wait.
  void go_on() noexcept {
    idle_ = 0;
    next_round();
  }
  /// Tries again at once, or lets another rank run first, and begins the next round. False: that
  /// has been done often enough, and it is time to sleep.
  bool linger() noexcept;
  /// Sleeps until a gate opens or there is news, but not longer than `most`; then begins the next
  /// round. Returns whether there is news.
  bool sleep(std::chrono::nanoseconds most) noexcept;

 private:
  void await(Gate& gate) noexcept {
    gate.asked = round_;
    waiting_[count_++] = &gate;
  }
  void next_round() noexcept {
    ++round_;
    count_ = 0;
  }
  void look() noexcept;
  void yield() noexcept;
  [[nodiscard]] bool sees_any() noexcept;
  std::size_t fill_entries() noexcept;
  void open_ready() noexcept;

  static constexpr std::size_t kOwn = 2;

  int control_;
  int other_ = -1;
  bool crowded_;
  std::vector<Gate*> waiting_;
  std::vector<pollfd> entries_;  // control connections, other_, then those waiting
  std::size_t count_ = 0;
  std::uint32_t round_ = 1;
  int idle_ = 0;         // rounds since something moved
  int sleep_first_ = 0;  // waits left that skip yielding, because a stranger has our core
};

}  // namespace sinew::tcp
