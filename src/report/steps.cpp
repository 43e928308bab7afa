#include "report/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/quantity.hpp"
#include "report/wire.hpp"
#include "trace/activity.hpp"
#include "trace/arrivals.hpp"

namespace sinew::report {
namespace {

using trace::Activity;
using trace::Trace;

/// Of an iteration on one rank: what it called how often, and what it moved.
struct Content {
  std::map<std::string, std::uint64_t> calls;
  std::map<std::string, double> wire;
  double all_wire = 0;
};

/// Marks that the program left; empty: none. They may touch but not overlap.
std::vector<std::pair<std::uint64_t, Interval>> marks_of(const Trace& trace) {
  std::vector<std::pair<std::uint64_t, Interval>> marks;
  std::vector<bool> is_mark;
  for (const auto& counter : trace.counters)
    is_mark.push_back(trace::activity_of(trace::routine_name(trace, counter.key)) ==
                      Activity::iteration);
  for (const auto& call : trace.records)
    if (is_mark[call.counter])
      marks.push_back({call.sequence, {call.begin_ns, call.begin_ns + call.duration_ns}});
  std::sort(marks.begin(), marks.end(),
            [](const auto& a, const auto& b) { return a.second.begin_ns < b.second.begin_ns; });
  for (std::size_t i = 0; i + 1 < marks.size(); ++i)
    marks[i].second.end_ns = std::min(marks[i].second.end_ns, marks[i + 1].second.begin_ns);
  return marks;
}

std::vector<Interval> loops_of(const trace::Profile& profile) {
  std::vector<Interval> windows;
  for (const auto& phase : profile.phases)
    for (std::size_t i = 0; i + 1 < phase.starts_ns.size(); ++i)
      windows.push_back({phase.starts_ns[i], phase.starts_ns[i + 1]});
  std::sort(windows.begin(), windows.end(),
            [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  for (std::size_t i = 0; i + 1 < windows.size(); ++i)
    windows[i].end_ns = std::min(windows[i].end_ns, windows[i + 1].begin_ns);
  return windows;
}

std::vector<Content> contents_of(const Trace& trace, std::span<const Interval> windows, int ranks) {
  std::vector<Content> contents(windows.size());
  std::vector<std::string> names;
  std::vector<double> wire;
  std::vector<bool> counts;
  for (const auto& counter : trace.counters) {
    const auto& key = counter.key;
    names.push_back(trace::routine_name(trace, key));
    counts.push_back(trace::activity_of(names.back()) == Activity::communication);
    wire.push_back(wire_bytes(names.back(), key.bytes, key.sent, ranks).value);
  }
  for (const auto& call : trace.records) {
    if (!counts[call.counter]) continue;
    const auto after = std::upper_bound(
        windows.begin(), windows.end(), call.begin_ns,
        [](std::uint64_t at, const Interval& window) { return at < window.begin_ns; });
    if (after == windows.begin() || call.begin_ns >= std::prev(after)->end_ns) continue;
    auto& content = contents[static_cast<std::size_t>(after - windows.begin()) - 1];
    ++content.calls[names[call.counter]];
    content.wire[names[call.counter]] += wire[call.counter];
    content.all_wire += wire[call.counter];
  }
  return contents;
}

/// The routines that carry the data of an iteration.
std::string kind_of(const Content& content) {
  std::string kind;
  for (const auto& [routine, wire] : content.wire)
    if (wire >= 0.01 * content.all_wire && wire > 0) kind += routine + ' ';
  return kind;
}

std::string pattern_of(const Content& content) {
  std::vector<std::pair<std::string, std::uint64_t>> calls(content.calls.begin(),
                                                           content.calls.end());
  std::stable_sort(calls.begin(), calls.end(), [&](const auto& a, const auto& b) {
    return content.wire.at(a.first) > content.wire.at(b.first);
  });
  constexpr std::size_t kMost = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, calls.size()); ++i)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ",
                        calls[i].second > 1 ? fmt::format("{} x ", calls[i].second) : "",
                        calls[i].first);
  return text + (calls.size() > kMost ? ", ..." : "");
}

struct Run {
  std::size_t begin, end;
  std::string kind;
};

/// Where the data's routines or its amount change. A few that differ are part of what surrounds
/// them.
std::vector<Run> runs_of(const std::vector<Content>& contents) {
  constexpr double kLike = 3;
  std::vector<Run> runs;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const auto kind = kind_of(contents[i]);
    const auto wire = contents[i].all_wire;
    if (!runs.empty()) {
      const auto& last = contents[runs.back().begin];
      const bool alike = wire <= kLike * last.all_wire && last.all_wire <= kLike * wire;
      if (kind == runs.back().kind && alike) {
        runs.back().end = i + 1;
        continue;
      }
    }
    runs.push_back({i, i + 1, kind});
  }
  const auto few = std::max<std::size_t>(3, contents.size() / 50);
  for (std::size_t i = 0; i < runs.size();) {
    const bool small = runs[i].end - runs[i].begin < few && runs.size() > 1;
    if (!small) {
      ++i;
      continue;
    }
    // To the neighbour that does the same, else to the one before.
    const bool next = i == 0 || (i + 1 < runs.size() && runs[i + 1].kind == runs[i].kind);
    if (next)
      runs[i + 1].begin = runs[i].begin;
    else
      runs[i - 1].end = runs[i].end;
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (std::size_t i = 1; i < runs.size();) {
    if (runs[i].kind == runs[i - 1].kind && runs[i].end - runs[i].begin < few) {
      runs[i - 1].end = runs[i].end;
      runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return runs;
}

StepPhase phase_of(std::span<const Iteration> iterations, const Content& content) {
  StepPhase phase;
  phase.first = iterations.front().number;
  phase.iterations = iterations.size();
  std::vector<double> lengths;
  std::vector<Measured> measured;
  const auto weight = 1 / static_cast<double>(iterations.size());
  for (const auto& one : iterations) {
    phase.split.add(one.split, weight);
    phase.wire_bytes += weight * one.wire_bytes;
    lengths.push_back(one.split.elapsed_s);
    measured.push_back({one.split.elapsed_s});
  }
  phase.error_s = mean_of<Source::measured>(measured).error.value;
  std::sort(lengths.begin(), lengths.end());
  phase.median_s = lengths[(lengths.size() - 1) / 2];
  phase.p95_s = lengths[(lengths.size() - 1) * 95 / 100];
  phase.longest_s = lengths.back();
  phase.pattern = pattern_of(content);
  return phase;
}

/// A gradient of which less travels takes another way than the whole, unless its size is told:
/// otherwise sizes may differ because the work does. Without marks only a warm-up is known for what
/// it is: allreduces, then something lighter.
bool may_be_sparse(const std::vector<Run>& runs, bool marked) {
  if (!marked && (runs.size() != 2 || runs[0].kind.find("llreduce") == std::string::npos))
    return false;
  return std::any_of(runs.begin(), runs.end(),
                     [&](const Run& run) { return run.kind != runs.front().kind; });
}

void name_phases(std::vector<StepPhase>& phases, bool ways, double dense_wire) {
  double most = dense_wire;
  for (const auto& phase : phases) most = std::max(most, phase.wire_bytes);
  const bool differ = (ways || dense_wire > 0) &&
                      std::any_of(phases.begin(), phases.end(),
                                  [&](const auto& phase) { return phase.wire_bytes * 2 < most; });
  for (std::size_t i = 0; i < phases.size(); ++i) {
    auto& phase = phases[i];
    if (differ && phase.wire_bytes * 1.5 > most)
      phase.name = "dense";
    else if (differ && phase.wire_bytes > 0 && phase.wire_bytes * 2 < most)
      phase.name = "sparse";
    else
      phase.name = phases.size() == 1 ? "all" : fmt::format("phase {}", i + 1);
  }
}

}  // namespace

const StepPhase* phase_named(const Steps& steps, std::string_view name) {
  for (const auto& phase : steps.phases)
    if (phase.name == name) return &phase;
  return nullptr;
}

Steps find_steps(std::span<const Trace> traces, const trace::Profile& profile,
                 std::span<const RankTime> times, double dense_bytes) {
  Steps steps;
  if (traces.empty()) return steps;
  const auto ranks = static_cast<int>(traces.size());
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, window] : marks_of(traces.front())) {
    numbers.push_back(number);
    steps.windows.push_back(window);
  }
  steps.marked = !numbers.empty();
  if (!steps.marked) steps.windows = loops_of(profile);
  if (steps.windows.size() < 3) return {};
  const auto& windows = steps.windows;
  steps.iterations.resize(windows.size());
  std::vector<Content> contents;
  for (std::size_t t = 0; t < traces.size(); ++t) {
    auto mine = windows;
    if (const auto marks = marks_of(traces[t]); marks.size() == windows.size())
      for (std::size_t i = 0; i < marks.size(); ++i) mine[i] = marks[i].second;
    auto content = contents_of(traces[t], mine, ranks);
    const auto splits = splits_of(times[t], mine);
    for (std::size_t i = 0; i < windows.size(); ++i) {
      steps.iterations[i].split.add(splits[i], 1.0 / ranks);
      steps.iterations[i].wire_bytes += content[i].all_wire / ranks;
    }
    if (t == 0) contents = std::move(content);
  }
  for (std::size_t i = 0; i < windows.size(); ++i) {
    auto& one = steps.iterations[i];
    one.number = steps.marked ? numbers[i] : i;
    one.begin_s = static_cast<double>(windows[i].begin_ns - times.front().whole.begin_ns) * 1e-9;
    contents[i].all_wire = one.wire_bytes;  // of all ranks: one may have less than the others
  }
  const auto runs = runs_of(contents);
  for (const auto& run : runs) {
    for (auto i = run.begin; i < run.end; ++i) steps.iterations[i].phase = steps.phases.size();
    steps.phases.push_back(
        phase_of(std::span(steps.iterations).subspan(run.begin, run.end - run.begin),
                 contents[(run.begin + run.end) / 2]));
  }
  name_phases(steps.phases, may_be_sparse(runs, steps.marked),
              dense_bytes > 0
                  ? wire_bytes("allreduce", static_cast<std::uint64_t>(dense_bytes), 0, ranks).value
                  : 0);
  return steps;
}

}  // namespace sinew::report
