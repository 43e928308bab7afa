#include "trace/phases.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>

#include "trace/activity.hpp"
#include "trace/arrivals.hpp"
#include "trace/profile.hpp"

namespace sinew::trace {
namespace {

constexpr std::size_t kWindow = 1U << 15U;  // calls in which a pattern is looked for
constexpr int kMostAttempts = 512;          // where nothing repeats, looking on is in vain
constexpr std::size_t kMostPhases = 12;

using Symbols = std::vector<std::uint32_t>;  // equal calls have equal numbers

struct Loop {
  std::size_t begin = 0, period = 0, rounds = 0;
};

/// How far what begins at `shift` is like what begins at 0, for every shift (the Z function).
std::vector<std::size_t> likeness(std::span<const std::uint32_t> text) {
  std::vector<std::size_t> z(text.size(), 0);
  std::size_t left = 0, right = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (i < right) z[i] = std::min(right - i, z[i - left]);
    while (i + z[i] < text.size() && text[z[i]] == text[i + z[i]]) ++z[i];
    if (i + z[i] > right) std::tie(left, right) = std::pair(i, i + z[i]);
  }
  return z;
}

/// The loop at `begin` that explains the most calls; of several the shortest period.
Loop loop_at(const Symbols& symbols, std::size_t begin) {
  const auto rest = std::span(symbols).subspan(begin);
  const auto z = likeness(rest.first(std::min(rest.size(), kWindow)));
  Loop best{begin, 0, 0};
  std::size_t explained = 0;
  for (std::size_t period = 1; period < z.size(); ++period)
    if (z[period] >= 2 * period && period + z[period] > explained) {
      best.period = period;
      explained = period + z[period];
    }
  if (best.period == 0) return best;
  while (explained < rest.size() && rest[explained] == rest[explained - best.period]) ++explained;
  best.rounds = explained / best.period;
  return best;
}

std::vector<Loop> find_loops(const Symbols& symbols) {
  std::vector<Loop> loops;
  std::size_t step = 1;
  int attempts = 0;
  for (std::size_t at = 0; at < symbols.size() && attempts < kMostAttempts; ++attempts) {
    const auto loop = loop_at(symbols, at);
    if (loop.rounds >= 3) {
      loops.push_back(loop);
      at += loop.rounds * loop.period;
      step = 1;
    } else {
      at += step;  // what comes before a loop is passed in leaps
      step *= 2;
    }
  }
  return loops;
}

std::size_t explained_by(const std::vector<Loop>& loops) {
  return std::accumulate(loops.begin(), loops.end(), std::size_t{0},
                         [](auto sum, const auto& l) { return sum + l.period * l.rounds; });
}

bool communicates(const Trace& trace, const Counter& counter) {
  const auto& key = counter.key;
  const auto routine = routine_name(trace, key);
  if (activity_of(routine) != Activity::communication) return false;
  return key.bytes > 0 || key.sent > 0 || key.received > 0 ||
         routine.find("arrier") != std::string::npos;
}

/// The records of the busiest thread that communicate, while every one was kept.
std::vector<const RecordedCall*> calls_of(const Trace& trace) {
  std::vector<bool> wanted;
  for (const auto& counter : trace.counters) wanted.push_back(communicates(trace, counter));
  std::map<std::uint16_t, std::vector<const RecordedCall*>> by_thread;
  for (const auto& call : trace.records)
    if (call.stride == 1 && wanted[call.counter])
      by_thread[trace.counters[call.counter].thread].push_back(&call);
  std::vector<const RecordedCall*> most;
  for (auto& [thread, calls] : by_thread)
    if (calls.size() > most.size()) most = std::move(calls);
  return most;
}

Symbols symbols_of(const Trace& trace, const std::vector<const RecordedCall*>& calls, bool sizes) {
  std::map<std::tuple<int, int, std::uint32_t, std::uint64_t>, std::uint32_t> numbers;
  std::vector<std::uint32_t> of_counter;
  for (const auto& counter : trace.counters) {
    const auto& key = counter.key;
    const std::tuple what{int{key.kind}, int{key.operation}, key.communicator,
                          sizes ? key.bytes : 0};
    const auto next = static_cast<std::uint32_t>(numbers.size());
    of_counter.push_back(numbers.try_emplace(what, next).first->second);
  }
  Symbols symbols;
  for (const auto* call : calls) symbols.push_back(of_counter[call->counter]);
  return symbols;
}

std::vector<RoundCall> pattern_of(const Trace& trace, std::span<const RecordedCall* const> calls,
                                  std::size_t rounds, bool sizes_vary) {
  std::vector<RoundCall> pattern;
  for (const auto* call : calls) {
    const auto& key = trace.counters[call->counter].key;
    const auto routine = routine_name(trace, key);
    auto found = std::find_if(pattern.begin(), pattern.end(), [&](const RoundCall& known) {
      return known.routine == routine && (sizes_vary || known.bytes == key.bytes);
    });
    const auto took = static_cast<double>(call->duration_ns);
    if (found == pattern.end())
      found = pattern.insert(found, {routine, key.bytes, 0, 0, took, took});
    ++found->calls;
    found->mean_ns += took;
    found->shortest_ns = std::min(found->shortest_ns, took);
    found->longest_ns = std::max(found->longest_ns, took);
  }
  for (auto& call : pattern) {
    call.mean_ns /= static_cast<double>(call.calls);
    call.calls = (call.calls + rounds - 1) / rounds;
  }
  return pattern;
}

Phase phase_of(const Trace& trace, const std::vector<const RecordedCall*>& calls, const Loop& loop,
               bool sizes_vary) {
  Phase phase;
  phase.rounds = loop.rounds;
  phase.calls = loop.period;
  phase.sizes_vary = sizes_vary;
  const auto part = std::span(calls).subspan(loop.begin, loop.rounds * loop.period);
  phase.begin_ns = static_cast<double>(part.front()->begin_ns - trace.opened_ns);
  std::vector<double> lengths;
  for (std::size_t at = loop.period; at <= part.size(); at += loop.period) {
    const auto end =
        at < part.size() ? part[at]->begin_ns : part.back()->begin_ns + part.back()->duration_ns;
    lengths.push_back(static_cast<double>(end - part[at - loop.period]->begin_ns));
    phase.starts_ns.push_back(part[at - loop.period]->begin_ns);
    if (at == part.size()) phase.starts_ns.push_back(end);
  }
  const auto rounds = static_cast<double>(loop.rounds);
  phase.mean_ns = std::accumulate(lengths.begin(), lengths.end(), 0.0) / rounds;
  phase.rounds_ns = lengths;
  std::sort(lengths.begin(), lengths.end());
  phase.median_ns = lengths[lengths.size() / 2];
  phase.p95_ns = lengths[(lengths.size() - 1) * 95 / 100];
  phase.longest_ns = lengths.back();
  for (const auto* call : part)
    phase.in_calls_ns += static_cast<double>(call->duration_ns) / rounds;
  phase.pattern = pattern_of(trace, part, loop.rounds, sizes_vary);
  return phase;
}

}  // namespace

std::vector<Phase> find_phases(const Trace& trace) {
  const auto calls = calls_of(trace);
  if (calls.empty()) return {};
  auto loops = find_loops(symbols_of(trace, calls, true));
  bool sizes_vary = false;
  if (explained_by(loops) < calls.size() / 2) {  // sizes that change each time, perhaps
    auto coarse = find_loops(symbols_of(trace, calls, false));
    sizes_vary = explained_by(coarse) > explained_by(loops);
    if (sizes_vary) loops = std::move(coarse);
  }
  // Small loops beside large ones are detail.
  std::erase_if(loops, [&](const Loop& l) { return l.period * l.rounds < calls.size() / 50; });
  std::vector<Phase> phases;
  for (const auto& loop : loops)
    if (phases.size() < kMostPhases) phases.push_back(phase_of(trace, calls, loop, sizes_vary));
  return phases;
}

}  // namespace sinew::trace
