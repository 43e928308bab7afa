// A clock that each rank has for itself: what an operation seems to take is what the test says.
#pragma once

#include <functional>

#include "transport/decorated.hpp"
#include "transport/descriptor.hpp"

namespace sinew::test {

/// Time that seems to pass in an operation, by rank and algorithm_key(), on top of the true one.
using Lie = std::function<std::chrono::nanoseconds(int rank, std::uint64_t algorithm)>;

class OddClock final : public Decorated {
 public:
  OddClock(std::unique_ptr<Transport> inner, Lie lie)
      : Decorated(std::move(inner)), lie_(std::move(lie)) {}

  void enter(OpTag tag, const OpDescriptor& descriptor) noexcept override {
    ahead_ += lie_(rank(), descriptor.algorithm);
    inner().enter(tag, descriptor);
  }
  [[nodiscard]] Clock::time_point now() const noexcept override { return inner().now() + ahead_; }
  Progress park(bool moved, Deadline deadline) noexcept override {
    return inner().park(moved, deadline - ahead_);
  }
  std::unique_ptr<Transport> subset(std::span<const int> members, std::string_view label,
                                    Deadline deadline) override {
    return std::make_unique<OddClock>(inner().subset(members, label, deadline - ahead_), lie_);
  }

 private:
  Lie lie_;
  std::chrono::nanoseconds ahead_{};
};

}  // namespace sinew::test
