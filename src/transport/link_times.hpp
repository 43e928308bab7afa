// The links of an emulated network: what each node has been given to send and to receive, seen by
// all ranks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>

namespace sinew {

/// One link a node, full duplex, shared by its ranks. Make it before the ranks are forked or
/// started: it lives in memory that children share.
class LinkTimes {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  /// Throws Error{out_of_memory}.
  explicit LinkTimes(int nodes);
  LinkTimes(const LinkTimes&) = delete;
  LinkTimes& operator=(const LinkTimes&) = delete;
  ~LinkTimes();

  /// Puts something that takes `carrying` on the way from one node to another, behind all that is
  /// there already. Returns when the last of it is through.
  Nanoseconds carry(int from, int to, Nanoseconds now, Nanoseconds carrying) noexcept;

 private:
  struct alignas(64) Direction {
    std::atomic<std::int64_t> free_ns;  // when it has carried all it was given
  };
  struct Node {
    Direction out, in;
  };
  static Nanoseconds take(Direction& link, Nanoseconds now, Nanoseconds carrying) noexcept;

  std::span<Node> nodes_;
};

}  // namespace sinew
