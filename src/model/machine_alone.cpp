// What a rank does without messages: copying, combining, and shared memory.
#include <algorithm>

#include "model/machine.hpp"
#include "model/noise.hpp"

namespace sinew {
namespace {

constexpr std::uint64_t kWork = 1;  // a stream of random numbers

}  // namespace

// A step without messages. False: it waits for somebody's round.
bool Machine::work_alone(std::int32_t id, Rank& rank, Lane& lane, const Item& item) {
  const auto& board = network_.board;
  const double bytes = bytes_of(item);
  const auto pass_begin = std::uint64_t{lane.pass} * rank.program->rounds;
  Moment start = lane.work;
  Cost took;
  Awaited others;
  const auto work = [&](const Curve& curve) {
    if (item.chunks == 0) return;  // a word, not data
    const auto cost =
        work_cost(id, curve, bytes, std::uint64_t{lane.pass} << 32 | std::uint64_t{lane.local});
    start = worked(start, cost);
    rank.computing += cost.alpha + cost.beta;
    took.beta += cost.alpha + cost.beta;
  };
  const auto wait = [&](std::uint64_t position, double notice_ps) {
    if (!wait_for(id, rank, item, position, others)) return false;
    const auto noticed = after(others.when, {whole_ps(notice_ps, 0), 0});
    if (noticed.at > start.at)
      took.alpha = noticed.at - others.when.at;
    else
      others.last = -1;
    start = std::max(start, noticed);
    return true;
  };
  switch (item.kind()) {
    case Op::copy:
      work(network_.copy);
      break;
    case Op::reduce:
      work(network_.reduce);
      break;
    case Op::publish:
      // The slot before last must have been read; whoever sees that needs no further notice.
      if (lane.pass >= 2 && !wait(pass_begin - rank.program->rounds, 0)) return false;
      work(board->publish);
      break;
    case Op::gather_copy:
    case Op::gather_reduce:
    case Op::gather_reduce_all: {
      if (!wait(pass_begin + item.round, board->wait_ps)) return false;
      const auto peers = item.peer >= 0 ? 1 : members(rank, item) - 1;
      const bool everywhere = item.kind() == Op::gather_reduce_all;
      for (std::size_t i = 0; i < peers; ++i)
        work(rank.program->by_reference ? board->pull : board->gather);
      if (item.kind() != Op::gather_copy) work(network_.reduce);
      for (std::size_t i = 0; everywhere && i < peers; ++i) work(board->publish);
      break;
    }
    case Op::send:
    case Op::recv:
    case Op::recv_reduce:
      break;
  }
  record({.rank = id,
          .peer = others.last,
          .op = item.kind(),
          .round = item.round,
          .bytes = bytes,
          .begin = start.at - took.beta - took.alpha,
          .sent = start.at,
          .end = start.at,
          .cost = took});
  lane.work = start;
  lane.done = std::max(lane.done, start);
  return true;
}

// Some bytes of work: longer on slow ranks, and as chance has it.
Cost Machine::work_cost(std::int32_t id, const Curve& curve, double bytes,
                        std::uint64_t which) const {
  auto cost = curve.at(bytes);
  double factor = wiring_.slowness(id);
  if (network_.noise.deviation > 0)
    factor *=
        noise_factor(network_.noise,
                     random_key(network_.noise.seed, static_cast<std::uint64_t>(id), kWork), which);
  if (factor == 1) return cost;
  cost.alpha = whole_ps(static_cast<double>(cost.alpha) * factor, bytes);
  cost.beta = whole_ps(static_cast<double>(cost.beta) * factor, bytes);
  return cost;
}

std::size_t Machine::members(const Rank& rank, const Item& item) const {
  if (item.peer >= -1) return static_cast<std::size_t>(workload_.size);
  return rank.program->groups[static_cast<std::size_t>(-2 - item.peer)].size();
}

// When all whom `item` waits for are past every round before `position`.
bool Machine::wait_for(std::int32_t id, Rank& rank, const Item& item, std::uint64_t position,
                       Awaited& others) {
  if (item.peer >= 0) return passed(id, programs_.peer(item, id), position, others);
  if (item.peer < -1) {
    const auto& group = rank.program->groups[static_cast<std::size_t>(-2 - item.peer)];
    return std::all_of(group.begin(), group.end(),
                       [&](int member) { return passed(id, member, position, others); });
  }
  for (std::int32_t member = 0; member < workload_.size; ++member)
    if (!passed(id, member, position, others)) return false;
  return true;
}

bool Machine::passed(std::int32_t id, std::int32_t member, std::uint64_t position,
                     Awaited& others) {
  if (member == id) return true;
  auto& other = rank_at(member);
  if (!other.started) {
    other.waiters.push_back(id);
    return false;
  }
  for (std::uint32_t channel = 0; channel < other.program->channels; ++channel) {
    const auto& lane = other.lane(channel);
    if (lane.begin >= other.program->items.size()) continue;
    const auto at =
        std::uint64_t{lane.pass} * other.program->rounds + other.program->items[lane.begin].round;
    if (at >= position) continue;
    other.waiters.push_back(id);
    return false;
  }
  for (const auto& mark : other.marks)
    if (mark.position < position && mark.when > others.when) others = {mark.when, member};
  return true;
}

}  // namespace sinew
