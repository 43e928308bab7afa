#include "report/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "base/units.hpp"
#include "base/wrapped.hpp"

namespace sinew::report {
namespace {

constexpr std::size_t kMostSteps = 24, kMostWaiting = 5;

std::string size_text(double bytes) {
  return bytes > 0 ? human_bytes(static_cast<std::uint64_t>(bytes)) : "a word";
}

std::string sentence(const Activity& step) {
  const auto size = size_text(step.bytes);
  switch (step.op) {
    case Op::send:
      return fmt::format("rank {} sends {} to rank {}", step.rank, size, step.peer);
    case Op::recv_reduce:
    case Op::reduce:
      return fmt::format("rank {} combines {}", step.rank, size);
    case Op::copy:
      return fmt::format("rank {} copies {}", step.rank, size);
    case Op::publish:
      return fmt::format("rank {} publishes {}", step.rank, size);
    default:
      break;
  }
  const auto what = step.op == Op::gather_copy ? "reads" : "reads and combines";
  const auto whose = step.peer >= 0 ? fmt::format(" after rank {}", step.peer) : "";
  return fmt::format("rank {} {} {}{}", step.rank, what, size, whose);
}

// What sharing a link, or a port that was not free, added to a message.
Picoseconds lost(const Activity& step) {
  const auto own = step.cost.alpha + step.cost.beta;
  return own > 0 ? std::max<Picoseconds>(step.end - step.begin - own, 0) : 0;
}

std::string line_of(const Activity& step) {
  auto text = fmt::format("{:>9} {:>9}  {}, round {}", short_time(static_cast<double>(step.begin)),
                          short_time(static_cast<double>(step.end - step.begin)), sentence(step),
                          step.round);
  if (const auto extra = lost(step); extra > 0)
    text += fmt::format(" ({} of it waiting)", short_time(static_cast<double>(extra)));
  return wrapped(text, 79, 21) + "\n";
}

}  // namespace

std::string explain_in_words(const CriticalPath& path) {
  std::string text =
      fmt::format("{:>9} {:>9}  the longest chain: each waits for the one before\n", "at", "takes");
  Picoseconds before = 0;
  const auto count = path.steps.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto& step = path.steps[i];
    const bool hidden = count > kMostSteps && i >= kMostSteps / 2 && i + kMostSteps / 2 < count;
    if (!hidden && step.begin > before)
      text += fmt::format("{:>9} {:>9}  {}\n", short_time(static_cast<double>(before)),
                          short_time(static_cast<double>(step.begin - before)),
                          i == 0 ? fmt::format("until rank {} begins", step.rank)
                                 : std::string("nothing on the chain moves"));
    if (!hidden)
      text += line_of(step);
    else if (i == kMostSteps / 2)
      text += fmt::format("{:>9} {:>9}  {} more steps\n", "...", "", count - kMostSteps);
    before = step.end;
  }
  text += fmt::format("{:>9} {:>9}  done\n", short_time(static_cast<double>(path.end)), "");
  if (path.waiting.empty()) return text;
  text += "\nWho waits for whom, in all:\n";
  for (std::size_t i = 0; i < std::min(kMostWaiting, path.waiting.size()); ++i)
    text += fmt::format("{:>19}  rank {} waits for rank {}\n",
                        short_time(static_cast<double>(path.waiting[i].time)), path.waiting[i].rank,
                        path.waiting[i].awaited);
  return text;
}

std::vector<int> ranks_shown(const CriticalPath& path, std::span<const Activity> activities,
                             std::size_t most) {
  std::set<int> all, chain;
  for (const auto& activity : activities) all.insert(activity.rank);
  if (all.size() <= most) return {all.begin(), all.end()};
  for (auto step = path.steps.rbegin(); step != path.steps.rend() && chain.size() < most; ++step) {
    chain.insert(step->rank);
    if (step->op == Op::send && chain.size() < most) chain.insert(step->peer);
  }
  return {chain.begin(), chain.end()};
}

}  // namespace sinew::report
