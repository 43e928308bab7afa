// Threads of control that take turns in one thread, so that a seed decides everything.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace sinew::test {

class Fiber {
 public:
  explicit Fiber(std::function<void()> body) : body_(std::move(body)), stack_(new char[kStack]) {
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack_.get();
    own_.uc_stack.ss_size = kStack;
    own_.uc_link = &caller_;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    // makecontext passes ints only.
    makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs it until it yields or ends. It must not yield inside a catch block.
  void resume() { swapcontext(&caller_, &own_); }
  /// Of the fiber itself: back to whoever resumed it.
  void yield() { swapcontext(&own_, &caller_); }
  [[nodiscard]] bool has_ended() const { return ended_; }

 private:
  static constexpr std::size_t kStack = std::size_t{256} << 10;
  static void enter(unsigned high, unsigned low) {
    auto* self = reinterpret_cast<Fiber*>(std::uintptr_t{high} << 32 | low);
    self->body_();
    self->ended_ = true;
  }

  std::function<void()> body_;
  std::unique_ptr<char[]> stack_;
  ucontext_t own_{}, caller_{};
  bool ended_ = false;
};

}  // namespace sinew::test
