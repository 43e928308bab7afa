// Where the ranks of a contender meet between samples, and where their times end up.
#pragma once

#include <cstdint>

#include "measure/contender.hpp"

namespace sinew::bench {

/// Nanoseconds of a clock that all ranks share, or else of each rank's own.
struct Stamp {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};

struct Report {
  std::uint64_t wrong = 0;    // elements
  std::uint32_t samples = 0;  // stamped
  std::uint32_t batch = 1;    // calls in each
  /// A sample begins when the first rank does, not when the last has come: where ranks share a core
  /// or have work of their own, much may be done by then.
  bool from_first = false;
};

class Meeting {
 public:
  Meeting() = default;
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  virtual ~Meeting() = default;

  [[nodiscard]] virtual Seat seat() const noexcept = 0;
  /// Whether some ranks share a core. The same on all.
  [[nodiscard]] virtual bool crowded() const noexcept = 0;
  virtual void barrier() = 0;
  /// A barrier that also hands rank 0's value to all.
  virtual std::uint32_t agree(std::uint32_t value_of_rank_0) = 0;

  virtual void stamp(std::uint32_t sample, Stamp times) noexcept = 0;
  /// The last start and the last end over all ranks. All ask, after a barrier.
  [[nodiscard]] virtual Stamp last_of_all(std::uint32_t sample) = 0;
  /// What this rank's turn came to. The same on all ranks, but for `wrong`.
  virtual void report(const Report& report) = 0;
};

}  // namespace sinew::bench
