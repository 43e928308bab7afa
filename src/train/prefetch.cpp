#include "train/prefetch.hpp"

#include <algorithm>
#include <utility>

namespace sinew {

Prefetched::~Prefetched() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  wake_thread_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Prefetched::expect(std::span<const std::uint32_t> which) const {
  std::unique_lock lock(mutex_);
  wake_owner_.wait(lock, [&] { return !wanted_; });
  expected_.assign(which.begin(), which.end());
  failure_ = nullptr;
  ready_ = false;
  wanted_ = true;
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  lock.unlock();
  wake_thread_.notify_one();
}

void Prefetched::fill(std::span<const std::uint32_t> which, Batch& into) const {
  {
    std::unique_lock lock(mutex_);
    wake_owner_.wait(lock, [&] { return !wanted_; });
    if (ready_ && std::equal(which.begin(), which.end(), expected_.begin(), expected_.end())) {
      ready_ = false;
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
      std::swap(into, batch_);
      return;
    }
  }
  source_->fill(which, into);
}

void Prefetched::work() const {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_thread_.wait(lock, [&] { return stop_ || wanted_; });
    if (stop_) return;
    lock.unlock();  // until wanted_ is false nobody else touches the batch
    std::exception_ptr failure;
    try {
      source_->fill(expected_, batch_);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    ready_ = true;
    wanted_ = false;
    wake_owner_.notify_one();
  }
}

}  // namespace sinew
