#include "report/recorded_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include <sinew/error.hpp>
#include <sinew/trace.hpp>

namespace sinew::report {
namespace {

using trace::NoteKind;
using trace::RecordedCall;
using trace::Trace;

std::string note(const Trace& trace, NoteKind kind, std::uint64_t about) {
  const auto found = trace.notes.find({kind, about});
  return found == trace.notes.end() ? "" : found->second;
}

int rank_of(const Trace& trace) {
  const auto info = note(trace, NoteKind::info, 0);
  const auto at = info.find("rank=");
  int rank = -1;
  if (at != std::string::npos)
    std::from_chars(info.data() + at + 5, info.data() + info.size(), rank);
  return rank;
}

bool is_kind(const trace::Key& key, EventKind kind) {
  return key.kind == static_cast<std::uint8_t>(kind);
}

/// One step of one rank, in nanoseconds of the common clock.
struct StepRecord {
  int rank = 0, peer = -1;
  Op op{};
  std::uint32_t round = 0, channel = 0;
  std::uint64_t bytes = 0, begin_ns = 0, end_ns = 0;
};

std::vector<StepRecord> steps_of(std::span<const Trace> traces, const RecordedCollective& which) {
  std::vector<StepRecord> steps;
  for (const auto& trace : traces)
    for (const auto& call : trace.records) {
      const auto& key = trace.counters[call.counter].key;
      if (!is_kind(key, EventKind::step) || key.communicator != which.communicator ||
          call.sequence != which.sequence)
        continue;
      steps.push_back({.rank = rank_of(trace),
                       .peer = key.peer,
                       .op = static_cast<Op>(key.operation),
                       .round = key.round,
                       .channel = key.channel,
                       .bytes = key.bytes,
                       .begin_ns = call.begin_ns,
                       .end_ns = call.begin_ns + call.duration_ns});
    }
  std::stable_sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
    return std::tie(a.end_ns, a.begin_ns) < std::tie(b.end_ns, b.begin_ns);
  });
  return steps;
}

bool receives(Op op) { return op == Op::recv || op == Op::recv_reduce; }
bool gathers(Op op) {
  return op == Op::gather_copy || op == Op::gather_reduce || op == Op::gather_reduce_all;
}

// Who published last of what this gather could see.
const StepRecord* last_publisher(const std::vector<StepRecord>& steps, const StepRecord& gather) {
  const StepRecord* last = nullptr;
  for (const auto& step : steps) {
    if (step.op != Op::publish || step.rank == gather.rank || step.round >= gather.round ||
        step.end_ns > gather.end_ns || (gather.peer >= 0 && step.rank != gather.peer))
      continue;
    if (last == nullptr || step.end_ns > last->end_ns) last = &step;
  }
  return last;
}

}  // namespace

std::vector<RecordedCollective> recorded_collectives(std::span<const Trace> traces) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, RecordedCollective> found;
  for (const auto& trace : traces) {
    if (trace.boot != traces.front().boot)
      throw Error(
          Errc::invalid_argument,
          "these traces are of several hosts, whose clocks cannot be compared step by step");
    for (const auto& call : trace.records) {
      const auto& key = trace.counters[call.counter].key;
      if (!is_kind(key, EventKind::collective)) continue;
      auto& one = found[{key.communicator, call.sequence}];
      const auto end_ns = call.begin_ns + call.duration_ns;
      if (one.ranks++ == 0) {
        one.communicator = key.communicator;
        one.sequence = call.sequence;
        one.collective = name(static_cast<Collective>(key.operation));
        one.algorithm = note(trace, NoteKind::algorithm, key.algorithm);
        one.bytes = key.bytes;
        one.begin_ns = call.begin_ns;
      }
      one.begin_ns = std::min(one.begin_ns, call.begin_ns);
      one.end_ns = std::max(one.end_ns, end_ns);
    }
  }
  std::vector<RecordedCollective> all;
  for (auto& [key, one] : found) all.push_back(std::move(one));
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  return all;
}

std::vector<Activity> recorded_steps(std::span<const Trace> traces,
                                     const RecordedCollective& which) {
  const auto steps = steps_of(traces, which);
  std::map<std::tuple<int, int, std::uint32_t>, std::vector<const StepRecord*>> sent;
  std::map<std::tuple<int, int, std::uint32_t>, std::size_t> taken;
  for (const auto& step : steps)
    if (step.op == Op::send) sent[{step.rank, step.peer, step.channel}].push_back(&step);
  const auto ps = [&](std::uint64_t ns) {
    return static_cast<Picoseconds>(ns - std::min(which.begin_ns, ns)) * 1000;
  };
  std::vector<Activity> all;
  for (const auto& step : steps) {
    Activity one{.rank = step.rank,
                 .op = step.op,
                 .round = step.round,
                 .bytes = static_cast<double>(step.bytes),
                 .begin = ps(step.begin_ns),
                 .sent = ps(step.end_ns),
                 .end = ps(step.end_ns)};
    if (step.op == Op::send) continue;  // shown with its receive
    if (receives(step.op)) {
      const auto route = std::tuple(step.peer, step.rank, step.channel);
      const auto at = taken[route]++;
      if (at >= sent[route].size()) continue;
      const auto& from = *sent[route][at];
      one.rank = step.peer;
      one.peer = step.rank;
      one.op = Op::send;
      one.begin = std::min(ps(from.end_ns), one.end);
      one.sent = std::max(one.begin, std::min(ps(from.end_ns), one.end));
    } else if (gathers(step.op)) {
      const auto* last = last_publisher(steps, step);
      if (last != nullptr && last->end_ns > step.begin_ns) {
        one.peer = last->rank;
        one.begin = ps(last->end_ns);
      }
    }
    all.push_back(one);
  }
  return all;
}

}  // namespace sinew::report
