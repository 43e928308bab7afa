#include "model/traffic.hpp"

#include <algorithm>
#include <set>

#include "schedule/form.hpp"

namespace sinew {
namespace {

bool is_local(Op op) { return op == Op::copy || op == Op::reduce; }

void count(const Schedule& schedule, const Step& step, Traffic& traffic) {
  const auto others = [&] { return std::uint64_t{members(schedule, step).size() - 1}; };
  switch (step.op) {
    case Op::send:
      ++traffic.sends;
      traffic.sent += step.src.count;
      break;
    case Op::recv:
    case Op::recv_reduce:
      ++traffic.recvs;
      traffic.received += step.dst.count;
      break;
    case Op::publish:
      if (!schedule.by_reference) traffic.written += step.src.count;
      break;
    case Op::gather_copy:
      if (step.peer != schedule.rank) traffic.read += step.dst.count;
      break;
    case Op::gather_reduce:
      traffic.read += others() * step.dst.count;
      break;
    case Op::gather_reduce_all:
      traffic.read += others() * step.dst.count;
      traffic.written += others() * step.dst.count;
      break;
    case Op::copy:
    case Op::reduce:
      break;
  }
}

}  // namespace

WorldTraffic traffic(const World& world) {
  WorldTraffic result;
  std::set<std::uint32_t> rounds;
  for (const auto& schedule : world.ranks) {
    auto& mine = result.ranks.emplace_back();
    result.message = std::max(schedule.chunks[0], schedule.chunks[1]);
    for (const auto& step : schedule.steps) {
      count(schedule, step, mine);
      if (!is_local(step.op)) rounds.insert(step.round);
    }
  }
  result.rounds = static_cast<std::uint32_t>(rounds.size());
  return result;
}

Traffic busiest(const std::vector<Traffic>& ranks) {
  Traffic most;
  for (const auto& rank : ranks) {
    most.sends = std::max(most.sends, rank.sends);
    most.recvs = std::max(most.recvs, rank.recvs);
    most.sent = std::max(most.sent, rank.sent);
    most.received = std::max(most.received, rank.received);
    most.written = std::max(most.written, rank.written);
    most.read = std::max(most.read, rank.read);
  }
  return most;
}

}  // namespace sinew
