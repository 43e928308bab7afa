// Threads of control that take turns in one thread, so that a seed decides everything.
#pragma once

#include <ucontext.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

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
  void resume() {
    void* here = leave_for(stack_.get(), kStack);
    swapcontext(&caller_, &own_);
    arrive_at(here);
  }
  /// Of the fiber itself: back to whoever resumed it.
  void yield() {
    void* here = leave_for(callers_stack_, callers_size_);
    swapcontext(&own_, &caller_);
    remember_caller(here);
  }
  [[nodiscard]] bool has_ended() const { return ended_; }

 private:
  static constexpr std::size_t kStack = std::size_t{256} << 10;
  static void enter(unsigned high, unsigned low) {
    auto* self = reinterpret_cast<Fiber*>(std::uintptr_t{high} << 32 | low);
    self->remember_caller(nullptr);
    self->body_();
    self->ended_ = true;
    leave_for_good(self->callers_stack_, self->callers_size_);
  }

  // The address sanitizer must be told which stack is the current one.
#ifdef __SANITIZE_ADDRESS__
  static void* leave_for(const void* stack, std::size_t bytes) {
    void* here = nullptr;
    __sanitizer_start_switch_fiber(&here, stack, bytes);
    return here;
  }
  static void leave_for_good(const void* stack, std::size_t bytes) {
    __sanitizer_start_switch_fiber(nullptr, stack, bytes);
  }
  static void arrive_at(void* here) { __sanitizer_finish_switch_fiber(here, nullptr, nullptr); }
  void remember_caller(void* here) {
    __sanitizer_finish_switch_fiber(here, &callers_stack_, &callers_size_);
  }
#else
  static void* leave_for(const void*, std::size_t) { return nullptr; }
  static void leave_for_good(const void*, std::size_t) {}
  static void arrive_at(void*) {}
  void remember_caller(void*) {}
#endif

  std::function<void()> body_;
  std::unique_ptr<char[]> stack_;
  ucontext_t own_{}, caller_{};
  bool ended_ = false;
  const void* callers_stack_ = nullptr;
  std::size_t callers_size_ = 0;
};

}  // namespace sinew::test
