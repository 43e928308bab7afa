#include "model/select.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace sinew {
namespace {

// One rank's time: rounds one after another, in each the work of all its steps.
double schedule_ns(const Schedule& schedule, double bytes, const CostTable& cost) {
  const double full = std::max(schedule.chunks[0], schedule.chunks[1]);
  const double chunk = full > 0 ? bytes / full : 0;
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
        work += moved * cost.message_byte_ns;
        wait = std::max(wait, cost.message_ns);
        break;
      case Op::recv_reduce:
        work += moved * (cost.message_byte_ns + cost.reduce_byte_ns);
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
  const double per_pass = schedule.chunks[3] > 0 ? cost.slot_bytes / schedule.chunks[3] : bytes + 1;
  const double passes = schedule.chunks[3] > 0 ? std::max(1.0, std::ceil(chunk / per_pass)) : 1;
  return passes * latency + work;
}

}  // namespace

CostTable cost_table(std::string_view transport, std::uint64_t slot_bytes, int ranks, int cores) {
  CostTable cost{};
  cost.slot_bytes = static_cast<double>(slot_bytes);
  const bool in_memory = transport == "local" || transport == "shm";
  const bool over_mpi = transport == "mpi";  // as on one host; elsewhere MPI's are not ours to know
  if (over_mpi)
    cost = {.message_ns = 400,
            .message_byte_ns = 0.1,
            .wait_ns = 0,
            .publish_byte_ns = 0,
            .gather_byte_ns = 0,
            .reduce_byte_ns = 0.02,
            .slot_bytes = cost.slot_bytes};
  else if (in_memory)
    cost = {.message_ns = 250,
            .message_byte_ns = 0.1,
            .wait_ns = 120,
            .publish_byte_ns = 0.04,
            .gather_byte_ns = 0.04,
            .reduce_byte_ns = 0.015,
            .slot_bytes = cost.slot_bytes};
  else
    cost = {.message_ns = 15000,
            .message_byte_ns = 0.8,
            .wait_ns = 0,
            .publish_byte_ns = 0,
            .gather_byte_ns = 0,
            .reduce_byte_ns = 0.02,
            .slot_bytes = cost.slot_bytes};
  if ((in_memory || over_mpi) && ranks > cores) {
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
  // The slowest of a few: first, second, middle, last. The same few on every rank.
  double slowest = 0;
  for (const int rank :
       std::set<int>{0, std::min(1, place.size - 1), place.size / 2, place.size - 1}) {
    place.rank = rank;
    slowest =
        std::max(slowest, schedule_ns(algorithm.make(place), static_cast<double>(bytes), cost));
  }
  return slowest;
}

}  // namespace sinew
