// What a world of schedules moves, counted step by step: rounds, messages and shares of the
// message.
#pragma once

#include <cstdint>
#include <vector>

#include <sinew/schedule.hpp>

namespace sinew {

/// One rank's traffic. Amounts are in chunks of the larger user buffer, the message.
struct Traffic {
  std::uint32_t sends = 0;  // messages
  std::uint32_t recvs = 0;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t written = 0;  // where other ranks can read it: slots, or their shared buffers
  std::uint64_t read = 0;     // out of other ranks' slots or shared buffers
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

struct WorldTraffic {
  std::uint32_t rounds = 0;   // in which ranks communicate; purely local rounds do not count
  std::uint32_t message = 0;  // chunks of the message; 0 where there is no data
  std::vector<Traffic> ranks;
};

WorldTraffic traffic(const World& world);

/// The largest of each field, over some of the ranks.
Traffic busiest(const std::vector<Traffic>& ranks);

}  // namespace sinew
