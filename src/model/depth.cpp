#include "model/depth.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

namespace sinew {
namespace {

/// The steps of one rank on one channel, which go round by round.
struct Lane {
  int rank = 0;
  std::vector<const Step*> steps{};
  std::size_t next = 0;  // the first step of the round it is in
  int depth = 0;         // messages in the longest chain that led here
  bool sent = false;     // what it sends in this round
};

using Route = std::tuple<int, int, int>;        // from, to, channel
using Mail = std::map<Route, std::deque<int>>;  // depths of messages under way

std::size_t end_of_round(const Lane& lane) {
  auto end = lane.next;
  while (end < lane.steps.size() && lane.steps[end]->round == lane.steps[lane.next]->round) ++end;
  return end;
}

bool receives(const Step& step) { return step.op == Op::recv || step.op == Op::recv_reduce; }

// Finishes the round if everything it waits for is under way.
bool advance(Lane& lane, Mail& mail) {
  const auto end = end_of_round(lane);
  const std::span<const Step* const> round(lane.steps.data() + lane.next, end - lane.next);
  if (!lane.sent)
    for (const auto* step : round)
      if (step->op == Op::send) mail[{lane.rank, step->peer, step->channel}].push_back(lane.depth);
  lane.sent = true;
  std::map<Route, std::size_t> wanted;
  for (const auto* step : round)
    if (receives(*step)) ++wanted[{step->peer, lane.rank, step->channel}];
  for (const auto& [route, count] : wanted)
    if (mail[route].size() < count) return false;
  for (const auto& [route, count] : wanted)
    for (std::size_t i = 0; i < count; ++i) {
      lane.depth = std::max(lane.depth, mail[route].front() + 1);
      mail[route].pop_front();
    }
  lane.next = end;
  lane.sent = false;
  return true;
}

}  // namespace

int message_depth(std::span<const Schedule> ranks) {
  std::vector<Lane> lanes;
  for (const auto& schedule : ranks) {
    std::map<int, Lane> by_channel;
    for (const auto& step : schedule.steps) by_channel[step.channel].steps.push_back(&step);
    for (auto& [channel, lane] : by_channel) {
      lane.rank = schedule.rank;
      lanes.push_back(std::move(lane));
    }
  }
  Mail mail;
  int depth = 0;
  for (bool any = true; any;) {
    any = false;
    for (auto& lane : lanes) {
      while (lane.next < lane.steps.size() && advance(lane, mail)) any = true;
      depth = std::max(depth, lane.depth);
    }
  }
  return depth;
}

}  // namespace sinew
