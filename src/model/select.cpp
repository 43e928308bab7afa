#include "model/select.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "model/depth.hpp"

#include "schedule/form.hpp"

namespace sinew {
namespace {

double chunk_bytes(const Schedule& schedule, double bytes) {
  const double full = std::max(schedule.chunks[0], schedule.chunks[1]);
  return full > 0 ? bytes / full : 0;
}

// How often a schedule runs when its chunks go through slots.
double passes_of(const Schedule& schedule, double chunk, const CostTable& cost) {
  if (schedule.chunks[3] == 0) return 1;
  return std::max(1.0, std::ceil(chunk / (cost.slot_bytes / schedule.chunks[3])));
}

// One rank's time: rounds one after another, in each the work of all its steps.
double schedule_ns(const Schedule& schedule, double bytes, const CostTable& cost) {
  const double chunk = chunk_bytes(schedule, bytes);
  std::map<std::uint32_t, double> waits;
  double work = 0;
  for (const auto& step : schedule.steps) {
    const double moved = chunk * std::max(step.src.count, step.dst.count);
    const double members =
        step.group >= 0
            ? static_cast<double>(schedule.groups[static_cast<std::size_t>(step.group)].size())
            : static_cast<double>(schedule.size);
    auto& wait = waits[step.round];
    switch (step.op) {
      case Op::send:
      case Op::recv:
        work += cost.post_ns + moved * cost.message_byte_ns;
        wait = std::max(wait, cost.message_ns);
        break;
      case Op::recv_reduce:
        work += cost.post_ns + moved * (cost.message_byte_ns + cost.reduce_byte_ns);
        wait = std::max(wait, cost.message_ns);
        break;
      case Op::copy:
        break;  // free in place, which is the common case
      case Op::reduce:
        work += moved * cost.reduce_byte_ns;
        break;
      case Op::publish:
        work += moved * cost.publish_byte_ns;
        break;
      case Op::gather_copy:
        work += moved * (cost.gather_byte_ns + cost.reduce_byte_ns);
        wait = std::max(wait, cost.wait_ns);
        break;
      case Op::gather_reduce:
        work += moved * ((members - 1) * cost.gather_byte_ns + cost.reduce_byte_ns);
        wait = std::max(wait, cost.wait_ns);
        break;
      case Op::gather_reduce_all:
        work += moved * members * 2 * cost.reduce_byte_ns;
        wait = std::max(wait, cost.wait_ns);
        break;
    }
  }
  double latency = 0;
  for (const auto& [round, wait] : waits) latency += wait;
  return passes_of(schedule, chunk, cost) * latency + work;
}

// What a node's ranks bring in from other nodes, round by round: each round waits once, and the
// busiest node's bytes share its link.
double crossing_ns(const Algorithm& algorithm, Place place, double bytes, const CostTable& cost) {
  const auto node = [&](int rank) { return place.node_of[static_cast<std::size_t>(rank)]; };
  std::map<std::uint32_t, std::map<int, double>> rounds;  // bytes into each node
  double passes = 1;
  for (place.rank = 0; place.rank < place.size; ++place.rank) {
    const auto schedule = algorithm.make(place);
    const double chunk = chunk_bytes(schedule, bytes);
    passes = std::max(passes, passes_of(schedule, chunk, cost));
    for (const auto& step : schedule.steps) {
      const double moved = chunk * std::max(step.src.count, step.dst.count);
      const int here = node(place.rank);
      double far = 0;  // members of other nodes that are read
      if (step.op == Op::recv || step.op == Op::recv_reduce || step.op == Op::gather_copy)
        far = step.peer >= 0 && node(step.peer) != here ? 1 : 0;
      if (step.op == Op::gather_reduce || step.op == Op::gather_reduce_all)
        for (const int member : members(schedule, step)) far += node(member) != here ? 1 : 0;
      if (far > 0) rounds[step.round][here] += far * moved;
    }
  }
  double total = 0;
  for (const auto& [round, into] : rounds) {
    double most = 0;
    for (const auto& [where, amount] : into) most = std::max(most, amount);
    total += passes * cost.node_message_ns + most * cost.node_byte_ns;
  }
  return total;
}

/// What one rank's messages cost its processor.
double message_work_ns(const Schedule& schedule, double bytes, const CostTable& cost) {
  const double full = std::max(schedule.chunks[0], schedule.chunks[1]);
  const double chunk = full > 0 ? bytes / full : 0;
  double work = 0;
  for (const auto& step : schedule.steps) {
    const double moved = chunk * std::max(step.src.count, step.dst.count);
    if (step.op == Op::send || step.op == Op::recv || step.op == Op::recv_reduce)
      work += cost.post_ns + moved * cost.message_byte_ns;
    if (step.op == Op::reduce || step.op == Op::recv_reduce) work += moved * cost.reduce_byte_ns;
  }
  return work;
}

// Few cores do everybody's work, so that all of it counts. What the busiest rank has to do cannot
// be shared out, and half of it finds the other cores idle. And whoever waits for a message needs a
// core again when it has come.
double crowded_ns(const Algorithm& algorithm, Place place, double bytes, const CostTable& cost) {
  double all = 0, busiest = 0;
  std::vector<Schedule> ranks;
  for (place.rank = 0; place.rank < place.size; ++place.rank) {
    ranks.push_back(algorithm.make(place));
    const auto work = message_work_ns(ranks.back(), bytes, cost);
    all += work;
    busiest = std::max(busiest, work);
  }
  return all / cost.crowded_by + busiest / 2 + message_depth(ranks) * cost.turn_ns;
}

}  // namespace

CostTable cost_table(Medium medium, std::uint64_t slot_bytes, int ranks, int cores) {
  CostTable cost{};
  cost.slot_bytes = static_cast<double>(slot_bytes);
  if (medium == Medium::memory)
    cost = {.message_ns = 250,
            .message_byte_ns = 0.1,
            .wait_ns = 120,
            .publish_byte_ns = 0.04,
            .gather_byte_ns = 0.04,
            .reduce_byte_ns = 0.015,
            .slot_bytes = cost.slot_bytes};
  else if (medium == Medium::mpi)  // as on one host; a fabric's figures are not ours to know
    cost = {.message_ns = 400,
            .message_byte_ns = 0.1,
            .wait_ns = 0,
            .publish_byte_ns = 0,
            .gather_byte_ns = 0,
            .reduce_byte_ns = 0.02,
            .slot_bytes = cost.slot_bytes};
  else  // sockets: measured on loopback, where a network adds to message_ns
    cost = {.message_ns = 4000,
            .message_byte_ns = 0.12,
            .wait_ns = 0,
            .publish_byte_ns = 0,
            .gather_byte_ns = 0,
            .reduce_byte_ns = 0.03,
            .slot_bytes = cost.slot_bytes,
            .post_ns = 2000,
            .turn_ns = 5000,
            .crowded_by = ranks > cores ? cores : 0};
  if (medium != Medium::sockets && ranks > cores) {
    const double share = static_cast<double>(ranks) / cores;
    cost.wait_ns = 900.0 * ranks;  // everyone's turn, at the price of a switch
    cost.message_ns = 1800.0 * share;
    for (double* each :
         {&cost.message_byte_ns, &cost.publish_byte_ns, &cost.gather_byte_ns, &cost.reduce_byte_ns})
      *each *= share;
  }
  return cost;
}

std::uint32_t segments_for(const Algorithm& algorithm, std::uint64_t bytes,
                           std::uint64_t chunk_bytes) {
  if (!algorithm.traits.pipelines) return 1;
  constexpr std::uint64_t kChunk = 64 << 10;
  const auto chunk = chunk_bytes > 0 ? chunk_bytes : kChunk;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>((bytes + chunk - 1) / chunk, 1, 256));
}

double estimate_ns(const Algorithm& algorithm, Place place, std::uint64_t bytes,
                   const CostTable& cost) {
  const double crossing =
      place.node_of.empty() ? 0 : crossing_ns(algorithm, place, static_cast<double>(bytes), cost);
  if (cost.crowded_by > 0)
    return crossing + crowded_ns(algorithm, place, static_cast<double>(bytes), cost);
  // The slowest of a few: first, second, middle, last. The same few on every rank.
  double slowest = 0;
  for (const int rank :
       std::set<int>{0, std::min(1, place.size - 1), place.size / 2, place.size - 1}) {
    place.rank = rank;
    slowest =
        std::max(slowest, schedule_ns(algorithm.make(place), static_cast<double>(bytes), cost));
  }
  return slowest + crossing;
}

bool has_levels(std::span<const int> node_of) {
  std::map<int, int> ranks;
  for (const int node : node_of) ++ranks[node];
  return std::count_if(ranks.begin(), ranks.end(),
                       [](const auto& node) { return node.second >= 2; }) >= 2;
}

}  // namespace sinew
