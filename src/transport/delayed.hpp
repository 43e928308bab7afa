// A slower medium: a message to another node arrives only after its time on the link and a latency.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "transport/decorated.hpp"
#include "transport/link_times.hpp"

namespace sinew {

struct Delay {
  std::chrono::nanoseconds latency{0};
  double bytes_per_second = 0;  // of each node's link, each way; 0: no limit
  /// Inside a node nothing is delayed and memory is shared. Empty: every rank is a node of its own.
  std::vector<int> node_of{};
  /// Of all nodes, the same for all ranks. Null: a rank knows only what it sends itself.
  std::shared_ptr<LinkTimes> links{};
};

/// All ranks of a group must have it, with equal delays and one clock: a message carries the time
/// of its arrival, and whoever receives it waits for that, so that several can be on their way.
class DelayedTransport final : public Decorated {
 public:
  using Now = std::function<Clock::time_point()>;
  DelayedTransport(std::unique_ptr<Transport> inner, Delay delay, Now clock = &Clock::now);

  [[nodiscard]] std::string_view name() const noexcept override { return "delayed"; }
  /// Shared memory as far as nodes reach.
  [[nodiscard]] Capabilities capabilities() const noexcept override;
  Board* board() noexcept override { return shares_memory() ? inner().board() : nullptr; }
  Arena* arena() noexcept override { return shares_memory() ? inner().arena() : nullptr; }
  [[nodiscard]] std::span<const int> node_of() const noexcept override { return delay_.node_of; }
  [[nodiscard]] NodeLink between_nodes() const noexcept override;
  [[nodiscard]] std::size_t slice_bytes() const noexcept override { return 0; }

  Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept override;
  Progress recv(Transfer& transfer, std::span<std::byte> data) noexcept override;
  Progress recv_reduce(Transfer& transfer, std::span<std::byte> data,
                       const Reducer& reducer) noexcept override;
  Progress park(bool moved, Deadline deadline) noexcept override;
  [[nodiscard]] bool has_left(int peer) const noexcept override;
  std::unique_ptr<Transport> subset(std::span<const int> members, std::string_view label,
                                    Deadline deadline) override;

 private:
  struct Wire {                      // from or to one peer, on one channel
    const Transfer* held = nullptr;  // begun and not finished; those after it wait
    Transfer stamp;                  // travels ahead of it
    bool stamped = false;            // and has done so
    bool taken = false;              // received, but for the time
    std::int64_t arrives_ns = 0;     // what it says
  };
  [[nodiscard]] bool shares_memory() const noexcept { return !delay_.node_of.empty(); }
  [[nodiscard]] int node(int rank) const noexcept;
  [[nodiscard]] bool is_near(int peer) const noexcept { return node(peer) == node(rank()); }
  [[nodiscard]] std::int64_t now_ns() const noexcept { return now_().time_since_epoch().count(); }
  /// The wire, if it is or becomes this transfer's turn.
  Wire* begin(std::vector<Wire>& wires, const Transfer& transfer) noexcept;
  template <class Verb>
  Progress receive(Transfer& transfer, Verb verb) noexcept;

  Delay delay_;
  Now now_;
  std::vector<Wire> sending_, receiving_;
};

}  // namespace sinew
