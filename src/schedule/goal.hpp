// Export to GOAL, the text that LogGOPSim's txt2bin reads: what a rank does, and after what.
#pragma once

#include <cstdint>
#include <string>

#include <sinew/schedule.hpp>

namespace sinew {

/// `bytes` is the size of the message: the larger user buffer, cut evenly into its chunks (the
/// first ones take the remainder).
///
/// - A step is a `send`, `recv` or `calc`; a round ends in a `calc 0` that its steps precede and
/// the
///   steps of the channel's next round require.
/// - The n-th message from one rank to another on a channel has a tag of its own, so matching does
///   not depend on the simulator's order. One that carries no data counts as one byte.
/// - Copying and combining cost time by bytes: `calc` in nanoseconds, at 10 bytes a nanosecond.
/// - GOAL knows no shared memory. What a gather reads from another rank becomes a message of that
///   many bytes (at least one) in the gather's round, and what it writes there one back; publishing
///   costs a copy. The waiting is therefore kept, and the bytes, but not who copies them.
std::string to_goal(const World& world, std::uint64_t bytes);

}  // namespace sinew
