// One collective that has been started: waiting for its turn, or running.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>

#include "runtime/planner.hpp"
#include "runtime/run.hpp"
#include "runtime/trial.hpp"

namespace sinew {

/// Keeps a plan from being forgotten.
struct Unuse {
  void operator()(Planned* planned) const noexcept { --planned->users; }
};
using Used = std::unique_ptr<Planned, Unuse>;
inline Used use(Planned& planned) noexcept {
  ++planned.users;
  return Used(&planned);
}

/// What a collective has to do with a trial.
enum class TrialRole : std::uint8_t {
  none,
  warm_up,   // a turn that is not measured
  turn,      // one that is
  exchange,  // it tells the others what was measured
  waits,     // it will run as that says
};

struct Active {
  explicit Active(Transport& transport) : run(transport) {}
  Planned* planned = nullptr;
  Run run;
  std::uint64_t user_tag = 0;
  OpTag tag;
  std::chrono::nanoseconds limit{};
  Deadline deadline{};
  Clock::time_point begun{};
  Clock::time_point warned{};  // or when to, if not yet

  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  TrialRole role = TrialRole::none;
  std::shared_ptr<Trial> trial;
  int side = 0;                                // of a turn: whose,
  bool is_first_turn = false;                  // and whether it had none before in this trial
  std::array<Planned*, kMostTried> choices{};  // of one that waits: what runs if that side wins
  Clock::time_point since{};                   // of a turn: when the caller came in,
  std::chrono::nanoseconds spent{};            // and how long it was in here before

  [[nodiscard]] OpDescriptor descriptor() const {
    if (role == TrialRole::exchange) return trial->exchange();
    auto descriptor = planned->descriptor;
    descriptor.tag = user_tag;
    return descriptor;
  }
  /// A turn counts the time that its caller spends in the library, not what it does in between.
  void come_in(Clock::time_point now) noexcept { since = now; }
  void go_out(Clock::time_point now) noexcept { spent += now - since; }
  /// What its role asks for before it begins, and when it is done. All before it are done then, so
  /// that turns have been measured where times are exchanged, and those are known where they count.
  void begin_role(Clock::time_point now) noexcept;
  void end_role(Clock::time_point now) noexcept;
};

}  // namespace sinew
