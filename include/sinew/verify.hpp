// Symbolic verification: does a world of schedules do what its collective promises?
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sinew/schedule.hpp>

namespace sinew {

/// How a send completes: at once (buffered), or only when its receive has begun (synchronous).
/// A schedule must work under both, because a transport may do either at different sizes.
enum class Sends : std::uint8_t { buffered, synchronous };
/// Whether output overlays input (as in an in-place call).
enum class Placement : std::uint8_t { apart, in_place };
/// Whether `publish` copies into a slot, or only tells where the data lies (so that overwriting it
/// before every reader is known to be done would change what they read).
enum class Exposure : std::uint8_t { copied, referenced };

/// The first thing that goes wrong, told so that a person can follow it.
struct Fault {
  int rank = -1;
  std::uint32_t round = 0;
  std::string why;
};

struct Verdict {
  std::optional<Fault> fault;
  bool same_order = false;  // every rank combines in the same order: the same bits everywhere
  bool rank_order = false;  // that order is ((0 op 1) op 2) op ...: the bits of `deterministic`
  [[nodiscard]] bool ok() const noexcept { return !fault; }
};

struct Conditions {
  Sends sends = Sends::synchronous;
  Placement placement = Placement::apart;
  Exposure exposure = Exposure::copied;
};

Verdict verify(const World& world, Conditions conditions = {});

}  // namespace sinew
