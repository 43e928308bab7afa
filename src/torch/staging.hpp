// A model on a device, and its homes in host memory: parameters go there before a pass, gradients
// come back while the backward pass is still running.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "torch/net.hpp"
#include "train/learner.hpp"

namespace sinew {

/// Host memory that the device's driver knows, so that copies run beside the computation. Does
/// nothing where there is no such driver or it refuses.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() { release(); }
  /// From the first of the spans to the end of the last.
  void pin(const std::vector<std::span<float>>& spans);
  void release() noexcept;

 private:
  void* begin_ = nullptr;
};

/// Used by one thread, and between begin() and finish() by those that autograd runs hooks in.
class Staging {
 public:
  explicit Staging(at::Device device);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  /// Moves the net's tensors to the device, and gives its parameters gradients there.
  void move(Net& net, const Homes& homes);
  [[nodiscard]] at::Device device() const noexcept { return device_; }

  /// Parameters and buffers as the host has them.
  void upload();
  /// A pass begins. `ready` is told of each gradient that has come to the host; null: more passes
  /// of this step follow, and gradients stay where they are.
  void begin(const Learner::Ready* ready);
  /// This parameter's gradient is complete, as far as the device's queue of work is concerned.
  void fetch(std::size_t parameter);
  /// Waits for all that was fetched, and brings buffers back. Throws what went wrong on the way.
  void finish();
  /// Waits for all that was fetched.
  void wait() noexcept;

 private:
  struct Pair {
    at::Tensor host, device;
  };
  struct Fetch {
    std::size_t parameter = 0;
    std::optional<c10::Event> arrived;  // none where copies are done when they return
  };
  void tell_in_thread();
  static void wait_for(const std::optional<c10::Event>& event);

  at::Device device_;
  std::vector<Pair> parameters_, gradients_, buffers_;
  PinnedMemory pinned_parameters_, pinned_gradients_;
  const Learner::Ready* ready_ = nullptr;
  bool is_new_step_ = true;  // gradients on the device are of an earlier one

  std::mutex mutex_;  // guards what is below
  std::condition_variable wake_thread_, wake_owner_;
  std::deque<Fetch> under_way_;
  std::size_t unfinished_ = 0;
  std::exception_ptr failure_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace sinew
