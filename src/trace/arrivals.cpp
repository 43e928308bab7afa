#include "trace/arrivals.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include <sinew/trace.hpp>
#include <sinew/types.hpp>

namespace sinew::trace {
namespace {

enum class Needs { all, root, root_needs_all };

std::optional<Needs> needs_of(std::string_view routine) {
  if (routine.ends_with("_c")) routine.remove_suffix(2);
  for (const std::string_view name :
       {"MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall",
        "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block",
        "barrier", "allreduce", "allgather", "alltoall", "reduce_scatter"})
    if (routine == name) return Needs::all;
  for (const std::string_view name : {"MPI_Bcast", "MPI_Scatter", "MPI_Scatterv"})
    if (routine == name) return Needs::root;
  for (const std::string_view name : {"MPI_Reduce", "MPI_Gather", "MPI_Gatherv"})
    if (routine == name) return Needs::root_needs_all;
  return {};
}

struct Arrival {
  std::size_t trace;
  const RecordedCall* call;
};

/// The rank that the others of a rooted collective need, or that needs them.
bool is_root(const Key& key, Needs needs) {
  return needs == Needs::root ? key.sent > key.received || (key.sent > 0 && key.received == 0)
                              : key.received > 0;
}

std::uint64_t last_begin(const std::vector<Arrival>& arrivals) {
  std::uint64_t last = 0;
  for (const auto& arrival : arrivals) last = std::max(last, arrival.call->begin_ns);
  return last;
}

}  // namespace

std::string routine_name(const Trace& trace, const Key& key) {
  if (key.kind == static_cast<std::uint8_t>(EventKind::call)) {
    const auto note = trace.notes.find({NoteKind::routine, key.operation});
    return note != trace.notes.end() ? note->second : "routine " + std::to_string(key.operation);
  }
  if (key.kind == static_cast<std::uint8_t>(EventKind::collective) &&
      key.operation < kCollectives.size())
    return std::string(name(static_cast<Collective>(key.operation)));
  return key.kind == static_cast<std::uint8_t>(EventKind::send)   ? "send"
         : key.kind == static_cast<std::uint8_t>(EventKind::recv) ? "recv"
                                                                  : "step";
}

Arrivals compare_arrivals(std::span<const Trace> traces) {
  Arrivals result;
  for (const auto& trace : traces) result.several_hosts |= trace.boot != traces.front().boot;
  if (result.several_hosts) return result;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Arrival>> meetings;
  std::map<std::uint32_t, std::size_t> sizes;
  std::vector<std::vector<std::optional<Needs>>> needs(traces.size());
  for (std::size_t t = 0; t < traces.size(); ++t) {
    const auto& trace = traces[t];
    for (const auto& counter : trace.counters)
      needs[t].push_back(needs_of(routine_name(trace, counter.key)));
    for (const auto& [id, text] : trace.notes) {
      if (id.first != NoteKind::communicator) continue;
      const auto at = text.find("\nsize=");
      if (at == std::string::npos) continue;
      sizes[static_cast<std::uint32_t>(id.second)] =
          std::strtoull(text.c_str() + at + 6, nullptr, 10);
    }
    for (const auto& call : trace.records) {
      if (!needs[t][call.counter]) continue;
      meetings[{trace.counters[call.counter].key.communicator, call.sequence}].push_back(
          {t, &call});
    }
  }
  for (const auto& [id, arrivals] : meetings) {
    if (arrivals.size() != sizes[id.first]) {
      ++result.incomplete;
      continue;
    }
    const auto last = last_begin(arrivals);
    const auto kind = *needs[arrivals[0].trace][arrivals[0].call->counter];
    std::uint64_t root_begin = 0;
    for (const auto& arrival : arrivals)
      if (is_root(traces[arrival.trace].counters[arrival.call->counter].key, kind))
        root_begin = arrival.call->begin_ns;
    for (const auto& [trace, call] : arrivals) {
      const bool root = is_root(traces[trace].counters[call->counter].key, kind);
      std::uint64_t until = last;
      if (kind == Needs::root) until = root ? 0 : root_begin;
      if (kind == Needs::root_needs_all && !root) until = 0;
      const auto wait = until > call->begin_ns ? until - call->begin_ns : 0;
      result.waited.push_back({trace, call->counter,
                               static_cast<double>(std::min(wait, call->duration_ns)),
                               static_cast<double>(call->duration_ns)});
    }
  }
  return result;
}

}  // namespace sinew::trace
