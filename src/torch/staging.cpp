#include "torch/staging.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>

namespace sinew {
namespace {

// Events of devices cannot be slept for in all versions of torch; a look every so often costs less
// than the spinning that the driver would do.
constexpr auto kBetweenLooks = std::chrono::microseconds(20);

// Torch has the CUDA runtime with it or not: it is found where it is loaded, so that nothing here
// needs it to be built.
template <class Function>
Function* loaded(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

}  // namespace

void PinnedMemory::pin(const std::vector<std::span<float>>& spans) {
  release();
  auto* enter = loaded<int(void*, std::size_t, unsigned)>("cudaHostRegister");
  if (enter == nullptr || spans.empty()) return;
  auto* begin = spans.front().data();
  auto* end = begin;
  for (const auto span : spans) {
    begin = std::min(begin, span.data());
    end = std::max(end, span.data() + span.size());
  }
  if (begin == end) return;
  if (enter(begin, static_cast<std::size_t>(end - begin) * sizeof(float), 0) == 0) {
    begin_ = begin;
  } else if (auto* forget = loaded<int()>("cudaGetLastError")) {
    forget();  // or torch takes it for the failure of its next call
  }
}

void PinnedMemory::release() noexcept {
  if (begin_ == nullptr) return;
  if (auto* leave = loaded<int(void*)>("cudaHostUnregister")) leave(begin_);
  begin_ = nullptr;
}

Staging::Staging(at::Device device) : device_(device), thread_([this] { tell_in_thread(); }) {}

Staging::~Staging() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  wake_thread_.notify_one();
  thread_.join();
}

void Staging::move(Net& net, const Homes& homes) {
  const at::NoGradGuard no_gradients;
  parameters_.clear();
  gradients_.clear();
  buffers_.clear();
  const auto pair = [&](at::Tensor& tensor, std::span<float> home) {
    auto host = at::from_blob(home.data(), tensor.sizes());
    host.copy_(tensor);
    tensor.set_data(host.to(device_, at::kFloat, /*non_blocking=*/false, /*copy=*/true));
    return Pair{host, tensor};
  };
  for (std::size_t i = 0; i < homes.parameters.size(); ++i) {
    auto& parameter = net.parameters()[i].tensor;
    parameters_.push_back(pair(parameter, homes.parameters[i]));
    parameter.mutable_grad() = at::zeros_like(parameter);
    gradients_.push_back(
        {at::from_blob(homes.gradients[i].data(), parameter.sizes()), parameter.grad()});
  }
  for (std::size_t i = 0; i < homes.buffers.size(); ++i)
    buffers_.push_back(pair(net.buffers()[i].tensor, homes.buffers[i]));
  net.arrange();
  if (device_.is_cpu()) return;
  pinned_parameters_.pin(homes.parameters);
  pinned_gradients_.pin(homes.gradients);
}

void Staging::upload() {
  const at::NoGradGuard no_gradients;
  for (auto& [host, device] : parameters_) device.copy_(host, /*non_blocking=*/true);
  for (auto& [host, device] : buffers_) device.copy_(host, /*non_blocking=*/true);
}

void Staging::begin(const Learner::Ready* ready) {
  if (is_new_step_)
    for (auto& gradient : gradients_) gradient.device.zero_();
  is_new_step_ = ready != nullptr;
  ready_ = ready;
}

void Staging::fetch(std::size_t parameter) {
  if (ready_ == nullptr) return;
  const at::NoGradGuard no_gradients;
  auto& [host, device] = gradients_[parameter];
  host.copy_(device, /*non_blocking=*/true);
  Fetch fetch{parameter, {}};
  if (!device_.is_cpu()) {
    fetch.arrived.emplace(device_.type());
    fetch.arrived->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  }
  {
    const std::scoped_lock lock(mutex_);
    under_way_.push_back(std::move(fetch));
    ++unfinished_;
  }
  wake_thread_.notify_one();
}

void Staging::wait_for(const std::optional<c10::Event>& event) {
  while (event && !event->query()) std::this_thread::sleep_for(kBetweenLooks);
}

void Staging::tell_in_thread() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_thread_.wait(lock, [&] { return stop_ || !under_way_.empty(); });
    if (stop_) return;
    const auto next = std::move(under_way_.front());
    under_way_.pop_front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      wait_for(next.arrived);
      (*ready_)(next.parameter);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) failure_ = failure;
    if (--unfinished_ == 0) wake_owner_.notify_one();
  }
}

void Staging::wait() noexcept {
  std::unique_lock lock(mutex_);
  wake_owner_.wait(lock, [&] { return unfinished_ == 0; });
}

void Staging::finish() {
  wait();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  const at::NoGradGuard no_gradients;
  for (auto& [host, device] : buffers_) host.copy_(device);
}

}  // namespace sinew
