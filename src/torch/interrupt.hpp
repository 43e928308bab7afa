// Ctrl-C and SIGTERM, as something that a run asks about between its steps.
#pragma once

#include <chrono>
#include <optional>

namespace sinew {

/// From construction on both signals are noted; a second one of a kind ends the process as usual.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] bool happened() const noexcept;
  /// Throws Interrupted after Ctrl-C; after SIGTERM only when a second has passed, because a
  /// launcher sends it too when a worker has failed, and that failure is about to show.
  void leave_if_asked();
  /// By SIGINT, and not by a launcher that ends a job in which another worker failed.
  [[nodiscard]] static bool came_from_a_person() noexcept;

 private:
  std::optional<std::chrono::steady_clock::time_point> noticed_;
};

/// Thrown to leave at once.
struct Interrupted {};

}  // namespace sinew
