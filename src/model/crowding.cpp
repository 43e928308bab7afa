#include "model/crowding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"

namespace sinew {
namespace {

void slow_down(Network& network, double turn_ps, double share) {
  for (auto* curve : {&network.one_way, &network.exchange}) *curve = curve->slowed(turn_ps, share);
  for (auto& link : network.topology.links) {
    link.one_way = link.one_way.slowed(turn_ps, share);
    link.exchange = link.exchange.slowed(turn_ps, share);
  }
  for (auto* curve : {&network.reduce, &network.copy}) *curve = curve->slowed(0, share);
  if (!network.board) return;
  network.board->wait_ps += turn_ps;
  for (auto* curve : {&network.board->publish, &network.board->gather, &network.board->pull})
    *curve = curve->slowed(0, share);
}

}  // namespace

int ranks_of_host(const Network& network, int ranks) {
  const auto& levels = network.topology.levels;
  return levels.size() < 2 || levels.front().size == 0 ? ranks
                                                       : std::min(ranks, levels.front().size);
}

Network crowded(const Network& network, int ranks, std::vector<std::string>& warnings) {
  const auto& cores = network.cores;
  const int here = ranks_of_host(network, ranks), measured = network.provenance.ranks;
  if (cores.count == 0 || here <= cores.count) return network;
  if (measured == here) return network;  // its times are those of as many ranks on as many cores
  auto result = network;
  const double share = static_cast<double>(here) / cores.count;
  const bool yields = cores.progress == Cores::Progress::yield;
  const double room = yields ? 3 : 10;
  // What was measured with more ranks than cores has turns in it already.
  if (measured <= cores.count)
    slow_down(result, share * (yields ? cores.switch_ps : cores.tick_ps), share);
  result.error.low /= room;
  result.error.high *= room;
  warnings.push_back(
      measured > cores.count
          ? fmt::format("{} ranks share {} cores, and the network was measured with {}: calibrate "
                        "with -p {}; this answer may be off by {} times",
                        here, cores.count, measured, here, room)
      : yields
          ? fmt::format("{} ranks share {} cores: every wait is taken as {:.1f} switches of {}, "
                        "which is right within a factor of {} at best; calibrate with -p {}",
                        here, cores.count, share, human_time_ps(cores.switch_ps), room, here)
          : fmt::format("{} ranks spin on {} cores and wait for the scheduler's tick of {}: only "
                        "the order of magnitude can be told; use a rank a core, or let them yield",
                        here, cores.count, human_time_ps(cores.tick_ps)));
  return result;
}

}  // namespace sinew
