#include "model/select.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "model/correction.hpp"
#include "model/depth.hpp"
#include "model/passes.hpp"
#include "model/program.hpp"
#include "model/simulate.hpp"
#include "schedule/form.hpp"

namespace sinew {
namespace {

constexpr double kMostSteps = 1e6;         // of all ranks that are looked at: 0.1 s
constexpr double kBuffered = 64 << 10;     // bytes of a message that its sender need not wait for
constexpr double kOverlapped = 1.0 / 8.0;  // of a chain of messages, where calls overlap

double total_ps(const Cost& cost) { return static_cast<double>(cost.alpha + cost.beta); }

bool is_one_way(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::scatter || collective == Collective::gather;
}

/// What one rank has to do itself.
struct Work {
  double ps = 0;
  double board_waits = 0;
  double longest = 0;  // bytes of a message
};

class Worker {
 public:
  Worker(const Network& network, Collective collective, double bytes)
      : network_(network), collective_(collective), bytes_(bytes) {}

  [[nodiscard]] Work of(const Schedule& schedule) const {
    const auto program = compile(schedule, is_in_place(collective_));
    const double passes = passes_of(schedule, bytes_, network_);
    const double chunk = chunk_bytes(schedule, bytes_) / passes;
    Work work;
    std::uint32_t waited = 0;  // the round after the last that waits for a board
    for (std::size_t i = 0; i < program.items.size();) {
      auto end = i;
      bool sends = false, receives = false;
      for (; end < program.items.size() && is_same_round(program.items[i], program.items[end]);
           ++end) {
        sends |= program.items[end].sends();
        receives |= program.items[end].receives();
      }
      for (; i < end; ++i) {
        const auto& item = program.items[i];
        const double bytes = chunk * item.chunks;
        work.ps += passes * item_ps(item, bytes, sends && receives, schedule, program);
        if (item.sends()) work.longest = std::max(work.longest, bytes);
        if (gathers(item) && waited <= item.round) {
          work.board_waits += passes;
          waited = item.round + 1;
        }
      }
    }
    return work;
  }

 private:
  static bool is_same_round(const Item& a, const Item& b) {
    return a.round == b.round && a.channel == b.channel;
  }
  static bool gathers(const Item& item) {
    return item.kind() == Op::gather_copy || item.kind() == Op::gather_reduce ||
           item.kind() == Op::gather_reduce_all;
  }
  // Half of a message is its sender's work and half its receiver's.
  [[nodiscard]] double item_ps(const Item& item, double bytes, bool both, const Schedule& schedule,
                               const Program& program) const {
    if (item.sends() || item.receives()) {
      const auto& curve =
          both && !network_.exchange.is_free() ? network_.exchange : network_.one_way;
      const double folds = item.kind() == Op::recv_reduce ? total_ps(network_.reduce.at(bytes)) : 0;
      return total_ps(curve.at(bytes)) / 2 + folds;
    }
    if (item.chunks == 0) return 0;  // a word
    const double reduced = total_ps(network_.reduce.at(bytes));
    if (item.kind() == Op::copy) return total_ps(network_.copy.at(bytes));
    if (item.kind() == Op::reduce || !network_.board) return reduced;
    const double published = total_ps(network_.board->publish.at(bytes));
    if (item.kind() == Op::publish) return published;
    const auto& reading = program.by_reference ? network_.board->pull : network_.board->gather;
    const double gathered = total_ps(reading.at(bytes));
    if (item.kind() == Op::gather_copy) return gathered;
    const double others =
        (item.peer >= -1 ? schedule.size
                         : static_cast<double>(
                               program.groups[static_cast<std::size_t>(-2 - item.peer)].size())) -
        1.0;
    return others * gathered + reduced +
           (item.kind() == Op::gather_reduce_all ? others * published : 0);
  }

  const Network& network_;
  Collective collective_;
  double bytes_;
};

Schedule schedule_of(const Algorithm& algorithm, Place place, int rank) {
  place.rank = rank;
  return algorithm.make(place);
}

// The busiest of a few ranks: first, second, middle, last.
Work busiest_of_few(const Algorithm& algorithm, const Place& place, const Worker& worker) {
  Work most;
  for (const int rank :
       std::set<int>{0, std::min(1, place.size - 1), place.size / 2, place.size - 1}) {
    const auto work = worker.of(schedule_of(algorithm, place, rank));
    most.ps = std::max(most.ps, work.ps);
    most.board_waits = std::max(most.board_waits, work.board_waits);
    most.longest = std::max(most.longest, work.longest);
  }
  return most;
}

// Whether all ranks can be looked at.
bool is_short(const Algorithm& algorithm, const Place& place) {
  const auto steps = schedule_of(algorithm, place, place.size / 2).steps.size();
  return static_cast<double>(steps) * place.size <= kMostSteps;
}

double crowded_ps(const Algorithm& algorithm, const Place& place, double bytes,
                  const Surroundings& around) {
  const Worker worker(around.network, algorithm.collective, bytes);
  const double share = static_cast<double>(place.size) / around.cores;
  const double turn = share * around.network.cores.switch_ps;
  const bool overlaps = is_one_way(algorithm.collective);
  Work busiest = busiest_of_few(algorithm, place, worker);
  double all = busiest.ps * place.size;
  double depth = std::log2(place.size);
  if (is_short(algorithm, place)) {
    std::vector<Schedule> ranks;
    all = 0;
    for (int rank = 0; rank < place.size; ++rank) {
      ranks.push_back(schedule_of(algorithm, place, rank));
      const auto work = worker.of(ranks.back());
      all += work.ps;
      busiest.ps = std::max(busiest.ps, work.ps);
      busiest.board_waits = std::max(busiest.board_waits, work.board_waits);
    }
    depth = message_depth(ranks);
  }
  // To read what all have published, everyone has had a turn to publish and has another to read.
  // Calls that overlap do so through two slots, and through as many messages as there is room for.
  const double hops = depth * (overlaps ? kOverlapped : 1);
  const double reads = 2 * busiest.board_waits * (overlaps ? 0.5 : 1);
  // Where messages go in slices, the others work on one while the busiest rank does on another.
  constexpr double kAlone = 0.25;  // of its work, which is not hidden so
  const double slices = busiest.board_waits == 0
                            ? passes_of(schedule_of(algorithm, place, 0), bytes, around.network)
                            : 1;
  const double work = all / around.cores + busiest.ps * std::max(1 / slices, kAlone);
  return std::max(work, busiest.ps) + (slices * hops + reads) * turn;
}

double alone_ps(const Algorithm& algorithm, const Place& place, double bytes,
                const Network& network) {
  const Worker worker(network, algorithm.collective, bytes);
  const auto busiest = busiest_of_few(algorithm, place, worker);
  const bool overlaps = is_one_way(algorithm.collective);
  if (overlaps && busiest.board_waits == 0 && busiest.longest <= kBuffered)
    return busiest.ps + network.call_ps;
  auto workload = workload_of(algorithm, place, bytes);
  workload.in_place = is_in_place(algorithm.collective);
  if (workload.symmetry == Symmetry::none && !is_short(algorithm, place)) return busiest.ps;
  // A slot is free again when its readers are known to be done.
  const double noticed =
      overlaps && network.board ? busiest.board_waits * network.board->wait_ps : 0;
  return static_cast<double>(simulate(workload, network).end.at) *
             correction(network, algorithm, place, bytes).value_or(1) +
         noticed;
}

// What a node's ranks bring in from other nodes, round by round: each round waits once, and the
// busiest node's bytes share its link.
double crossing_ps(const Algorithm& algorithm, const Place& place, double bytes,
                   const Surroundings& around) {
  const auto node = [&](int rank) { return place.node_of[static_cast<std::size_t>(rank)]; };
  std::map<std::uint32_t, std::map<int, double>> rounds;  // bytes into each node
  double passes = 1;
  for (int rank = 0; rank < place.size; ++rank) {
    const auto schedule = schedule_of(algorithm, place, rank);
    const double chunk = chunk_bytes(schedule, bytes);
    passes = std::max(passes, passes_of(schedule, bytes, around.network));
    for (const auto& step : schedule.steps) {
      const double moved = chunk * std::max(step.src.count, step.dst.count);
      const int here = node(rank);
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
    total += passes * around.crossing_ps + most * around.crossing_byte_ps;
  }
  return total;
}

}  // namespace

std::uint32_t segments_for(const Algorithm& algorithm, std::uint64_t bytes,
                           std::uint64_t chunk_bytes) {
  if (!algorithm.traits.pipelines) return 1;
  constexpr std::uint64_t kChunk = 64 << 10;
  const auto chunk = chunk_bytes > 0 ? chunk_bytes : kChunk;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>((bytes + chunk - 1) / chunk, 1, 256));
}

bool has_levels(std::span<const int> node_of) {
  std::map<int, int> ranks;
  for (const int node : node_of) ++ranks[node];
  return std::count_if(ranks.begin(), ranks.end(),
                       [](const auto& node) { return node.second >= 2; }) >= 2;
}

double call_ps(const Algorithm& algorithm, const Place& place, double bytes,
               const Surroundings& around) {
  if (place.size < 2) return around.network.call_ps;
  // What was measured with as many ranks on as few cores has their turns in it.
  const bool crowded = around.cores > 0 && place.size > around.cores &&
                       around.network.provenance.ranks != place.size;
  const double inside = crowded ? crowded_ps(algorithm, place, bytes, around)
                                : alone_ps(algorithm, place, bytes, around.network);
  return inside + (place.node_of.empty() ? 0 : crossing_ps(algorithm, place, bytes, around));
}

}  // namespace sinew
