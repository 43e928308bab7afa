#include <fmt/format.h>

#include <algorithm>

#include "report/summary.hpp"

namespace sinew::report {

namespace {

/// Parts of a time that make more than the whole.
void check(std::vector<std::string>& found, std::string_view what, const Split& split) {
  const auto parts =
      split.compute_s + split.data_s + split.compress_s + split.moving_s + split.waiting_s;
  if (parts > split.elapsed_s * (1 + 1e-6) + 1e-9)
    found.push_back(
        fmt::format("{} took {:.6g} s, its parts {:.6g} s", what, split.elapsed_s, parts));
}

void check(std::vector<std::string>& found, const Steps& steps) {
  std::uint64_t iterations = 0;
  double least = 1, most = 0, weighted = 0, elapsed = 0;
  for (const auto& phase : steps.phases) {
    check(found, "an iteration of the phase " + phase.name, phase.split);
    iterations += phase.iterations;
    const auto share = phase.split.exposed_s() / std::max(phase.split.elapsed_s, 1e-12);
    least = std::min(least, share);
    most = std::max(most, share);
    if (phase.median_s > phase.longest_s || phase.split.elapsed_s > phase.longest_s * (1 + 1e-9))
      found.push_back(
          fmt::format("iterations of the phase {} take {:.6g} s on average, {:.6g} s at "
                      "most",
                      phase.name, phase.split.elapsed_s, phase.longest_s));
  }
  for (const auto& one : steps.iterations) {
    weighted += one.split.exposed_s();
    elapsed += one.split.elapsed_s;
  }
  if (iterations != steps.iterations.size())
    found.push_back(
        fmt::format("the phases have {} iterations of {}", iterations, steps.iterations.size()));
  const auto share = weighted / std::max(elapsed, 1e-12);
  if (!steps.phases.empty() && (share < least - 1e-6 || share > most + 1e-6))
    found.push_back(
        fmt::format("{:.2f} % of all iterations is exposed communication, of the phases "
                    "between {:.2f} and {:.2f} %",
                    100 * share, 100 * least, 100 * most));
}

}  // namespace

std::vector<std::string> contradictions(const Summary& summary) {
  std::vector<std::string> found;
  const double rounding = summary.source.empty() ? 1e-6 : 2e-3;  // other tools print milliseconds
  for (const auto& routine : summary.routines) {
    if (routine.sizes.empty()) continue;
    std::uint64_t calls = 0, binned = 0;
    double seconds = 0;
    for (const auto& row : routine.sizes) {
      calls += row.calls;
      seconds += row.seconds;
    }
    for (const auto& row : routine.bins) binned += row.calls;
    if (calls != routine.calls || binned != calls)
      found.push_back(fmt::format("{} was called {} times, its sizes make {} and its bins {}",
                                  routine.name, routine.calls, calls, binned));
    if (seconds > routine.seconds * (1 + rounding) + rounding)
      found.push_back(fmt::format("{} took {:.6g} s, its sizes {:.6g} s", routine.name,
                                  routine.seconds, seconds));
    const auto& [least, mode, median, most, mean, distinct] = routine.spread;
    const bool ordered = least <= mode && mode <= most && least <= median && median <= most &&
                         static_cast<double>(least) <= mean + rounding &&
                         mean <= static_cast<double>(most) + rounding;
    if (!ordered || distinct != routine.sizes.size())
      found.push_back(fmt::format(
          "{}: sizes from {} to {} with mode {}, median {}, mean {:.1f} and {} distinct of {}",
          routine.name, least, most, mode, median, mean, distinct, routine.sizes.size()));
  }
  double shares = 0;
  for (const auto& routine : summary.routines) shares += routine.share;
  if (shares > 0 && (shares < 1 - 1e-6 || shares > 1 + 1e-6))
    found.push_back(fmt::format("the shares of the routines add up to {:.2f} %", 100 * shares));
  check(found, "a rank", summary.split);
  check(found, summary.steps);
  for (const auto& what : summary.disagreements) found.push_back(what);
  for (const auto& rank : summary.ranks) {
    if (rank.split) check(found, fmt::format("rank {}", rank.rank), *rank.split);
    if (rank.waited_s.value_or(0) > rank.communication_s * (1 + rounding) + rounding)
      found.push_back(fmt::format("rank {} waited for {:.6g} s in {:.6g} s of communication",
                                  rank.rank, *rank.waited_s, rank.communication_s));
  }
  return found;
}

}  // namespace sinew::report
