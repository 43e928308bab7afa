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
  Waiter(int control, std::size_t gates)
      : control_(control), waiting_(gates, nullptr), entries_(gates + 1) {}

  [[nodiscard]] bool passes(Gate& gate) noexcept {
    if (!gate.shut || gate.asked == round_ || gate.descriptor < 0) return true;
    await(gate);
    return false;
  }
  void shut(Gate& gate) noexcept {
    gate.shut = true;
    if (gate.asked != round_) await(gate);
  }

  /// Something moved: the next round.
  void next_round() noexcept {
    ++round_;
    count_ = 0;
  }
  /// Whether one of those waited for has come.
  [[nodiscard]] bool sees_any() noexcept;
  /// Looks, without sleeping, and begins the next round.
  void look() noexcept;
  /// Sleeps until a gate opens or the control connections have news, but not longer than `most`;
  /// then begins the next round. Returns whether there is news.
  bool sleep(std::chrono::nanoseconds most) noexcept;

 private:
  void await(Gate& gate) noexcept {
    gate.asked = round_;
    waiting_[count_++] = &gate;
  }
  std::size_t fill_entries() noexcept;
  void open_ready() noexcept;

  int control_;
  std::vector<Gate*> waiting_;
  std::vector<pollfd> entries_;  // of the control connections, then of those waiting
  std::size_t count_ = 0;
  std::uint32_t round_ = 1;
};

}  // namespace sinew::tcp
