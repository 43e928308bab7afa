// `--emulate 2x4,1Gbit,1ms`: a small cluster on one host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/delayed.hpp"

namespace sinew {

/// Nodes, each with one link that its ranks share. Without nodes there is no emulation.
struct Emulation {
  std::vector<int> node_of;
  double bytes_per_second = 0;
  std::chrono::nanoseconds latency{0};

  explicit operator bool() const noexcept { return !node_of.empty(); }
  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(node_of.size()); }
  /// What all ranks of a group share: make it once, before they are started.
  [[nodiscard]] std::shared_ptr<LinkTimes> links() const;
  /// `inner` as this network would have it.
  [[nodiscard]] std::unique_ptr<Transport> over(std::unique_ptr<Transport> inner,
                                                std::shared_ptr<LinkTimes> links) const;
};

/// "2x4,1Gbit,1ms": nodes x ranks, the rate of each node's link (Kbit, Mbit, Gbit a second,
/// decimal) and the latency between nodes (us, ms). Throws Error{invalid_argument}.
Emulation parse_emulation(const std::string& text);

}  // namespace sinew
