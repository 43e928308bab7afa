#include "torch/interrupt.hpp"

#include <csignal>

namespace sinew {
namespace {

// A handler can reach nothing else.
volatile std::sig_atomic_t last_signal = 0;

void note(int number) { last_signal = number; }

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  // Waiting goes on where it was; the next of its kind is not caught.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  ::sigaction(number, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  handle(SIGINT, note);
  handle(SIGTERM, note);
}

Interrupt::~Interrupt() {
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
}

bool Interrupt::happened() const noexcept { return last_signal != 0; }
void Interrupt::leave_if_asked() {
  if (last_signal == 0) return;
  if (came_from_a_person()) throw Interrupted{};
  const auto now = std::chrono::steady_clock::now();
  if (!noticed_) noticed_ = now;
  if (now - *noticed_ > std::chrono::seconds(1)) throw Interrupted{};
}

bool Interrupt::came_from_a_person() noexcept { return last_signal == SIGINT; }

}  // namespace sinew
