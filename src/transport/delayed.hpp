// A slower medium: every message leaves its sender only after a latency and its time on the wire.
#pragma once

#include <functional>
#include <vector>

#include "transport/decorated.hpp"

namespace sinew {

struct Delay {
  std::chrono::nanoseconds latency{0};
  double bytes_per_second = 0;  // of each pair of ranks and channel; 0: no limit
};

class DelayedTransport final : public DecoratedMessages {
 public:
  using Now = std::function<Clock::time_point()>;
  DelayedTransport(std::unique_ptr<Transport> inner, Delay delay, Now now = &Clock::now);

  [[nodiscard]] std::string_view name() const noexcept override { return "delayed"; }
  Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept override;
  Progress park(bool moved, Deadline deadline) noexcept override;
  std::unique_ptr<Transport> subset(std::span<const int> members, std::string_view label,
                                    Deadline deadline) override;

 private:
  struct Wire {                      // towards one peer, on one channel
    const Transfer* held = nullptr;  // on its way; those after it wait
    bool waits = false;              // for its time to come
    Clock::time_point arrives{};     // when it is let through
    Clock::time_point free{};        // when the wire has carried all it was given
  };

  Delay delay_;
  Now now_;
  std::vector<Wire> wires_;
};

}  // namespace sinew
