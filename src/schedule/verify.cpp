#include <sinew/verify.hpp>

#include "schedule/form.hpp"
#include "schedule/simulation.hpp"

namespace sinew {

Verdict verify(const World& world, Conditions conditions) {
  if (auto why = malformed(world)) return {Fault{-1, 0, *why}, false, false};
  if (!world.ranks.empty() && world.ranks.front().by_reference)
    conditions.exposure = Exposure::referenced;
  try {
    return detail::Simulation(world, conditions).run();
  } catch (detail::Fail& fail) {
    return {std::move(fail.fault), false, false};
  }
}

}  // namespace sinew
