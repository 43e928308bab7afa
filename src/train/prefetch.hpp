// Samples made ready by a thread of its own while the model computes.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "train/dataset.hpp"

namespace sinew {

/// Prepares what expect() names; fill() of the same samples then only hands it over, and waits
/// where it is not ready yet. Everything else it passes on. Used by one thread.
class Prefetched final : public Dataset {
 public:
  explicit Prefetched(std::unique_ptr<Dataset> source) : source_(std::move(source)) {}
  ~Prefetched() override;

  [[nodiscard]] std::size_t samples() const noexcept override { return source_->samples(); }
  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept override {
    return source_->shape();
  }
  [[nodiscard]] int classes() const noexcept override { return source_->classes(); }
  void fill(std::span<const std::uint32_t> which, Batch& into) const override;
  void expect(std::span<const std::uint32_t> which) const override;

 private:
  void work() const;

  std::unique_ptr<Dataset> source_;
  mutable std::mutex mutex_;  // guards what is below
  mutable std::condition_variable wake_thread_, wake_owner_;
  mutable std::vector<std::uint32_t> expected_;
  mutable Batch batch_;
  mutable std::exception_ptr failure_;
  mutable bool wanted_ = false, ready_ = false;  // expected_ is to be prepared; is prepared
  mutable bool stop_ = false;
  mutable std::thread thread_;  // from the first expect() on
};

}  // namespace sinew
