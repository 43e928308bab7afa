#include "model/simulate.hpp"

#include <algorithm>

#include "model/machine.hpp"
#include "model/passes.hpp"

namespace sinew {
namespace {

// After a few passes each further one takes as long as the one before.
Moment extrapolated(const Moment& before, const Moment& last, std::uint32_t more) {
  const auto go_on = [&](Picoseconds Moment::*part) {
    return last.*part + (last.*part - before.*part) * static_cast<Picoseconds>(more);
  };
  return {go_on(&Moment::at), go_on(&Moment::alpha), go_on(&Moment::beta), go_on(&Moment::gamma)};
}

}  // namespace

bool is_in_place(Collective collective) noexcept {
  return collective == Collective::allreduce || collective == Collective::broadcast;
}

Workload workload_of(const Algorithm& algorithm, const Place& place, double bytes) {
  Workload workload{.size = place.size, .bytes = bytes};
  workload.schedule = [make = algorithm.make, place](int rank) {
    Place at = place;
    at.rank = rank;
    return make(at);
  };
  workload.symmetry = find_symmetry(workload.size, workload.schedule);
  return workload;
}

Simulated simulate(const Workload& workload, const Network& network,
                   const SimulateOptions& options) {
  constexpr std::uint32_t kPassesShown = 4;
  const bool in_passes = network.slice_bytes > 0 || network.board.has_value();
  const auto passes =
      in_passes
          ? static_cast<std::uint32_t>(passes_of(workload.schedule(0), workload.bytes, network))
          : 1;
  const auto shown = std::min(passes, kPassesShown);
  auto outcome = Machine(workload, network, options, shown, passes).run();
  if (passes > shown) {
    auto unseen = options;
    unseen.record = nullptr;
    const auto before = Machine(workload, network, unseen, shown - 1, passes).run();
    outcome.end = extrapolated(before.end, outcome.end, passes - shown);
    outcome.messages = outcome.messages / shown * passes;
  }
  outcome.passes = passes;
  return outcome;
}

}  // namespace sinew
