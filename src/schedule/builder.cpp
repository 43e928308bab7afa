#include "schedule/builder.hpp"

#include <algorithm>
#include <tuple>

namespace sinew {

Schedule Builder::finish(std::uint32_t rounds) {
  auto& steps = schedule_.steps;
  // Moving nothing takes no step, except where waiting is the point.
  std::erase_if(steps, [](const Step& step) {
    return (step.op == Op::copy || step.op == Op::reduce) && step.dst.count == 0;
  });
  const auto earlier = [](const Step& a, const Step& b) {
    return std::tie(a.round, a.channel) < std::tie(b.round, b.channel);
  };
  if (!std::is_sorted(steps.begin(), steps.end(), earlier))  // most generators write in order
    std::stable_sort(steps.begin(), steps.end(), earlier);
  schedule_.rounds = rounds;
  return std::move(schedule_);
}

}  // namespace sinew
