#include "support/scripted_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sinew/trace.hpp>
#include <sinew/types.hpp>
#include "trace/profile.hpp"

namespace sinew::test {
namespace {

constexpr std::uint64_t kOpened = 1'000'000'000;

std::uint64_t ns(double seconds) { return kOpened + static_cast<std::uint64_t>(seconds * 1e9); }

/// The number of a name among the notes of a kind, from 1.
std::uint64_t note(trace::Trace& trace, trace::NoteKind kind, const std::string& text) {
  std::uint64_t number = 1;
  for (const auto& [id, known] : trace.notes) {
    if (id.first != kind) continue;
    if (known == text) return id.second;
    number = std::max(number, id.second + 1);
  }
  trace.notes[{kind, number}] = text;
  return number;
}

}  // namespace

ScriptedRun::ScriptedRun(int ranks)
    : traces_(static_cast<std::size_t>(ranks)),
      now_(traces_.size(), 0),
      mark_(traces_.size(), 0),
      collectives_(traces_.size(), 0) {
  for (int rank = 0; rank < ranks; ++rank) {
    auto& trace = traces_[static_cast<std::size_t>(rank)];
    trace.opened_ns = trace.latest_ns = kOpened;
    trace.closed = true;
    trace.notes[{trace::NoteKind::info, 0}] =
        fmt::format("rank={}\nsize={}\nhost=node\ncommand=./program", rank, ranks);
    trace.notes[{trace::NoteKind::communicator, 1}] = fmt::format("MPI_COMM_WORLD\nsize={}", ranks);
  }
}

void ScriptedRun::info(const std::string& key, const std::string& value) {
  for (auto& trace : traces_)
    trace.notes[{trace::NoteKind::info, 0}] += fmt::format("\n{}={}", key, value);
}

std::size_t ScriptedRun::counter(trace::Trace& trace, const std::string& routine,
                                 const ScriptedCall& what) {
  trace::Key key;
  key.bytes = what.bytes;
  key.peer = what.peer;
  key.communicator = 1;
  if (what.algorithm.empty()) {
    key.kind = static_cast<std::uint8_t>(EventKind::call);
    key.operation = static_cast<std::uint16_t>(note(trace, trace::NoteKind::routine, routine));
    key.sent = routine.find("ecv") == std::string::npos ? what.bytes : 0;
    key.received = what.bytes;
  } else {
    key.kind = static_cast<std::uint8_t>(EventKind::collective);
    key.operation = static_cast<std::uint16_t>(parse_collective(routine));
    key.algorithm = note(trace, trace::NoteKind::algorithm, what.algorithm);
  }
  for (std::size_t i = 0; i < trace.counters.size(); ++i)
    if (trace.counters[i].key == key) return i;
  trace.counters.emplace_back().key = key;
  return trace.counters.size() - 1;
}

void ScriptedRun::add(int rank, const std::string& routine, double begin, double end,
                      const ScriptedCall& what) {
  auto& trace = traces_[static_cast<std::size_t>(rank)];
  const auto index = counter(trace, routine, what);
  auto& counter = trace.counters[index];
  const auto length = static_cast<double>(ns(end) - ns(begin));
  counter.shortest_ns = counter.calls == 0 ? length : std::min(counter.shortest_ns, length);
  ++counter.calls;
  counter.sent += counter.key.sent;
  counter.received += counter.key.received;
  counter.total_ns += length;
  counter.longest_ns = std::max(counter.longest_ns, length);
  trace::RecordedCall call;
  call.counter = index;
  call.begin_ns = ns(begin);
  call.duration_ns = ns(end) - ns(begin);
  if (routine == "iteration") call.sequence = iteration_;
  trace.records.push_back(call);
  trace.latest_ns = std::max(trace.latest_ns, ns(end));
}

void ScriptedRun::call(int rank, const std::string& routine, double seconds,
                       const ScriptedCall& what) {
  auto& now = now_[static_cast<std::size_t>(rank)];
  add(rank, routine, now, now + seconds, what);
  now += seconds;
}

void ScriptedRun::beside(int rank, const std::string& routine, double seconds,
                         const ScriptedCall& what) {
  const auto now = now_[static_cast<std::size_t>(rank)];
  add(rank, routine, now, now + seconds, what);
}

void ScriptedRun::meet(const std::string& routine, double seconds, const ScriptedCall& what) {
  const auto end = *std::max_element(now_.begin(), now_.end()) + seconds;
  for (std::size_t rank = 0; rank < traces_.size(); ++rank) {
    add(static_cast<int>(rank), routine, now_[rank], end, what);
    traces_[rank].records.back().sequence = ++collectives_[rank];
    now_[rank] = end;
  }
}

void ScriptedRun::idle(int rank, double seconds) {
  now_[static_cast<std::size_t>(rank)] += seconds;
}

void ScriptedRun::end_iteration() {
  for (std::size_t rank = 0; rank < traces_.size(); ++rank) {
    add(static_cast<int>(rank), "iteration", mark_[rank], now_[rank], {});
    mark_[rank] = now_[rank];
  }
  ++iteration_;
}

std::vector<trace::Trace> ScriptedRun::traces() const { return traces_; }

report::Summary ScriptedRun::summary(const report::SummaryOptions& options) const {
  auto traces = traces_;
  const auto profile = trace::summarize_in_place(traces);
  return report::summarize(profile, traces, options);
}

}  // namespace sinew::test
