#include "trace/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <sinew/trace.hpp>
#include "trace/activity.hpp"
#include "trace/arrivals.hpp"
#include "trace/clocks.hpp"

namespace sinew::trace {
namespace {

std::map<std::string, std::string> info_of(const Trace& trace) {
  std::map<std::string, std::string> info;
  const auto note = trace.notes.find({NoteKind::info, 0});
  if (note == trace.notes.end()) return info;
  const std::string& text = note->second;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    const auto equals = line.find('=');
    if (equals != std::string::npos) info[line.substr(0, equals)] = line.substr(equals + 1);
    at = end + 1;
  }
  return info;
}

std::string text_of(const Trace& trace, NoteKind kind, std::uint64_t id) {
  const auto note = trace.notes.find({kind, id});
  return id == 0 || note == trace.notes.end() ? "" : note->second;
}

CommunicatorInfo communicator_of(const std::string& text) {
  CommunicatorInfo info;
  info.name = text.substr(0, text.find('\n'));
  if (const auto at = text.find("\nsize="); at != std::string::npos)
    info.size = std::atoi(text.c_str() + at + 6);
  if (const auto at = text.find("\nmembers="); at != std::string::npos)
    info.members = text.substr(at + 9);
  return info;
}

RankProfile rank_of(const Trace& trace) {
  RankProfile rank;
  rank.info = info_of(trace);
  const auto number = [&](const char* key, int otherwise) {
    const auto found = rank.info.find(key);
    return found == rank.info.end() ? otherwise : std::atoi(found->second.c_str());
  };
  rank.rank = number("rank", -1);
  rank.size = number("size", 0);
  rank.process = trace.process;
  rank.host = rank.info["host"];
  rank.command = rank.info["command"];
  rank.mpi = rank.info["mpi"];
  rank.closed = trace.closed;
  rank.problems = trace.problems;
  std::uint64_t last = trace.latest_ns;
  for (const auto& call : trace.records) last = std::max(last, call.begin_ns + call.duration_ns);
  rank.elapsed_ns = static_cast<double>(last - std::min(last, trace.opened_ns));
  return rank;
}

/// Kernels that keep time by the counter, alone or below a hypervisor, have found it even.
bool has_even_clock(const RankProfile& rank) {
  const auto source = rank.info.find("clocksource");
  if (source == rank.info.end()) return true;
  for (const char* const counter : {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen"})
    if (source->second == counter) return true;
  return false;
}

/// Calls of nothing, which the profiler makes at its start to know its own cost.
bool is_calibration(const Key& key) {
  return key.kind == static_cast<std::uint8_t>(EventKind::call) && key.operation == 0;
}

bool is_other(const Key& key) {
  return key.kind == static_cast<std::uint8_t>(EventKind::call) && key.operation == kOtherCalls;
}

/// What it has cost that the file could not grow as it should.
std::vector<std::string> losses(const Trace& trace, const RankProfile& rank) {
  std::uint64_t calls = 0, other = 0, kept = 0;
  for (const auto& counter : trace.counters) {
    if (!is_calibration(counter.key)) calls += counter.calls;
    if (is_other(counter.key)) other += counter.calls;
  }
  for (const auto& call : trace.records)
    if (!is_calibration(trace.counters[call.counter].key)) ++kept;
  const auto found = rank.info.find("no_room");
  const auto reason = found == rank.info.end() ? "" : fmt::format(" ({})", found->second);
  std::vector<std::string> lost;
  if (trace.lost_records)
    lost.push_back(
        fmt::format("no room for all records{}: {} of {} calls have one; counters are exact",
                    reason, kept, calls));
  if (other > 0)
    lost.push_back(
        fmt::format("no room for all counters{}: {} calls are counted together as 'other calls'",
                    reason, other));
  if (trace.lost_threads > 0)
    lost.push_back(fmt::format("{} threads found no room and are missing", trace.lost_threads));
  return lost;
}

void warn(Profile& profile, const Trace& trace, const RankProfile& rank) {
  const auto who =
      rank.rank >= 0 ? fmt::format("rank {}", rank.rank) : fmt::format("process {}", rank.process);
  if (const auto aborted = rank.info.find("aborted"); aborted != rank.info.end())
    profile.warnings.push_back(
        fmt::format("{} called MPI_Abort with status {}", who, aborted->second));
  else if (!trace.closed)
    profile.warnings.push_back(
        fmt::format("{} did not end in order; counted up to its last call", who));
  if (!has_even_clock(rank))
    profile.warnings.push_back(fmt::format(
        "{}: its host does not keep time by the processor's counter, as this profile does; times "
        "may be off, counts and bytes are not",
        who));
  for (const auto& loss : losses(trace, rank))
    profile.warnings.push_back(fmt::format("{}: {}", who, loss));
  for (const auto& problem : trace.problems)
    profile.warnings.push_back(fmt::format("{}: {}", who, problem));
}

/// Of a message by its tag, as the profiler was told; of our own exchanges as whoever recorded them
/// said, or as they say themselves, such as ALLTOALL_SPLIT.
std::string label_of(const Trace& trace, const Key& key) {
  if (key.kind != static_cast<std::uint8_t>(EventKind::collective) || key.label != 0)
    return text_of(trace, NoteKind::label, key.label);
  const auto role = text_of(trace, NoteKind::label, key.tag);
  if (role.empty()) return "";
  auto label = routine_name(trace, key) + "_" + role;
  for (auto& c : label) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return label;
}

ProfileKey key_of(const Trace& trace, const Key& key) {
  return {routine_name(trace, key),
          key.communicator,
          key.bytes,
          key.peer,
          key.tag,
          label_of(trace, key),
          text_of(trace, NoteKind::region, key.region)};
}

void add_waits(Profile& profile, std::vector<Trace>& traces) {
  const auto meetings = find_meetings(traces);
  const auto clocks = align_clocks(traces, meetings);
  if (!clocks.comparable) {
    profile.warnings.emplace_back(
        "ranks on several hosts that never met in a collective: their clocks cannot be compared, "
        "and waiting is not told from transfer");
    return;
  }
  std::vector<int> ranks;
  for (const auto& rank : profile.ranks) ranks.push_back(rank.rank);
  auto messages = compare_messages(traces, ranks, clocks.error_ns);
  profile.late_senders = std::move(messages.late);
  auto waits = compare_arrivals(meetings);
  waits.insert(waits.end(), messages.waited.begin(), messages.waited.end());
  for (const auto& wait : waits) {
    const auto key = key_of(traces[wait.trace], traces[wait.trace].counters[wait.counter].key);
    auto& rank = profile.ranks[wait.trace];
    for (Totals* const totals : {&rank.rows[key], &rank.routines[key.routine], &rank.all}) {
      totals->waited_ns += wait.waited_ns;
      totals->resolved_ns += wait.duration_ns;
      ++totals->resolved;
    }
    auto& waited = profile.waited_by_rank[key.routine];
    waited.resize(traces.size());
    waited[wait.trace] += wait.waited_ns;
  }
  if (!waits.empty()) profile.clock_error_ns = clocks.error_ns;
  profile.clock_offset_ns = clocks.offset_ns;
}

/// The median distance of such calls; 0: there are none.
double own_cost(const Trace& trace) {
  std::vector<double> distances;
  std::uint64_t last = 0;
  for (const auto& call : trace.records) {
    if (!is_calibration(trace.counters[call.counter].key)) continue;
    if (last != 0) distances.push_back(static_cast<double>(call.begin_ns - last));
    last = call.begin_ns;
  }
  if (distances.empty()) return 0;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

}  // namespace

void Totals::add(const Counter& counter) {
  Totals one;
  one.calls = counter.calls;
  one.sent = counter.sent;
  one.received = counter.received;
  one.bytes = counter.calls * counter.key.bytes;
  one.total_ns = counter.total_ns;
  one.shortest_ns = counter.shortest_ns;
  one.longest_ns = counter.longest_ns;
  one.in_flight_ns = counter.in_flight_ns;
  one.blocked_ns = counter.waiting_ns;
  add(one);
}

void Totals::add(const Totals& other) {
  if (other.calls > 0)
    shortest_ns = calls == 0 ? other.shortest_ns : std::min(shortest_ns, other.shortest_ns);
  longest_ns = std::max(longest_ns, other.longest_ns);
  calls += other.calls;
  sent += other.sent;
  received += other.received;
  bytes += other.bytes;
  total_ns += other.total_ns;
  in_flight_ns += other.in_flight_ns;
  blocked_ns += other.blocked_ns;
  waited_ns += other.waited_ns;
  resolved_ns += other.resolved_ns;
  resolved += other.resolved;
}

bool is_local(std::string_view routine) { return activity_of(routine) == Activity::local; }

bool is_communication(std::string_view routine) {
  return activity_of(routine) == Activity::communication;
}

std::uint64_t communicating_calls(const RankProfile& rank) {
  std::uint64_t local = 0;
  for (const auto& [routine, totals] : rank.routines)
    if (is_local(routine)) local += totals.calls;
  return rank.all.calls - std::min(local, rank.all.calls);
}

std::optional<double> info_number(const RankProfile& rank, const std::string& key) {
  const auto found = rank.info.find(key);
  if (found == rank.info.end()) return {};
  const auto& text = found->second;
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

void sum_over_ranks(Profile& profile) {
  std::stable_sort(profile.ranks.begin(), profile.ranks.end(),
                   [](const auto& a, const auto& b) { return a.rank < b.rank; });
  profile.routines.clear();
  profile.rows.clear();
  profile.time_by_rank.clear();
  for (std::size_t i = 0; i < profile.ranks.size(); ++i) {
    for (const auto& [routine, totals] : profile.ranks[i].routines) {
      profile.routines[routine].add(totals);
      auto& times = profile.time_by_rank[routine];
      times.resize(profile.ranks.size());
      times[i] = totals.total_ns;
    }
    for (const auto& [key, totals] : profile.ranks[i].rows) profile.rows[key].add(totals);
  }
}

Profile summarize(const std::vector<Trace>& traces) {
  auto copy = traces;
  return summarize_in_place(copy);
}

Profile summarize_in_place(std::vector<Trace>& traces) {
  std::stable_sort(traces.begin(), traces.end(), [](const Trace& a, const Trace& b) {
    return rank_of(a).rank < rank_of(b).rank;
  });
  Profile profile;
  for (const auto& trace : traces) {
    auto& rank = profile.ranks.emplace_back(rank_of(trace));
    warn(profile, trace, rank);
    profile.greatest_stride = std::max(profile.greatest_stride, trace.greatest_stride);
    profile.own_cost_ns = std::max(profile.own_cost_ns, own_cost(trace));
    for (const auto& [id, text] : trace.notes)
      if (id.first == NoteKind::communicator)
        profile.communicators.try_emplace(static_cast<std::uint32_t>(id.second),
                                          communicator_of(text));
    for (const auto& counter : trace.counters) {
      if (counter.calls == 0 || is_calibration(counter.key)) continue;
      const auto key = key_of(trace, counter.key);
      rank.rows[key].add(counter);
      rank.routines[key.routine].add(counter);
      rank.all.add(counter);
      if (is_communication(key.routine)) rank.communication_ns += counter.total_ns;
    }
  }
  if (profile.greatest_stride > 1)
    profile.warnings.push_back(
        fmt::format("past their budget traces hold one record in up to {}; counters are exact",
                    profile.greatest_stride));
  if (!traces.empty()) {
    add_waits(profile, traces);
    profile.phases = find_phases(traces.front());
  }
  sum_over_ranks(profile);
  const auto& ranks = profile.ranks;
  if (std::any_of(ranks.begin(), ranks.end(),
                  [](const RankProfile& rank) { return rank.info.count("nccl") > 0; }))
    profile.warnings.emplace_back(
        "NCCL is loaded: what it sends between GPUs is not seen here, MPI shows control traffic "
        "only; NCCL_DEBUG=INFO, its profiler plugin or a Kineto trace show the rest");
  if (!ranks.empty() && ranks.back().size > static_cast<int>(ranks.size()))
    profile.warnings.push_back(
        fmt::format("traces of {} ranks, but the job had {}", ranks.size(), ranks.back().size));
  return profile;
}

}  // namespace sinew::trace
