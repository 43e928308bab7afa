// Tells an observer about every transfer that completes.
#pragma once

#include <vector>

#include <sinew/trace.hpp>
#include "transport/decorated.hpp"

namespace sinew {

class TracedTransport final : public Decorated {
 public:
  /// `observer` is called in the thread that moves the data and must outlive this. `clock` is the
  /// clock of the events.
  using Now = Clock::time_point (*)();
  TracedTransport(std::unique_ptr<Transport> inner, Observer& observer, Now clock = &Clock::now);

  Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept override;
  Progress recv(Transfer& transfer, std::span<std::byte> data) noexcept override;
  Progress recv_reduce(Transfer& transfer, std::span<std::byte> data,
                       const Reducer& reducer) noexcept override;
  std::unique_ptr<Transport> subset(std::span<const int> members, std::string_view label,
                                    Deadline deadline) override;

 private:
  template <class Verb>
  Progress traced(EventKind kind, const Transfer& transfer, std::size_t bytes, Verb verb) noexcept;
  [[nodiscard]] std::uint64_t now_ns() const noexcept {
    return static_cast<std::uint64_t>(now_().time_since_epoch().count());
  }

  Observer& observer_;
  Now now_;
  // When the transfer that is first in line was begun, by direction, peer and channel; 0: none is.
  std::vector<std::uint64_t> begun_;
};

}  // namespace sinew
