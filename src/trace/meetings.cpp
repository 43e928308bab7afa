#include "trace/meetings.hpp"

#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

#include "trace/arrivals.hpp"

namespace sinew::trace {
namespace {

std::optional<Needs> needs_of(std::string_view routine) {
  if (routine.ends_with("_c")) routine.remove_suffix(2);
  for (const std::string_view name :
       {"MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall",
        "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block"})
    if (routine == name) return Needs::all;
  for (const std::string_view name : {"MPI_Bcast", "MPI_Scatter", "MPI_Scatterv"})
    if (routine == name) return Needs::root;
  for (const std::string_view name : {"MPI_Reduce", "MPI_Gather", "MPI_Gatherv"})
    if (routine == name) return Needs::root_needs_all;
  return {};
}

/// The rank that the others of a rooted collective need, or that needs them.
bool is_root(const Key& key, Needs needs) {
  return needs == Needs::root ? key.sent > key.received || (key.sent > 0 && key.received == 0)
                              : key.received > 0;
}

std::size_t size_in(const std::string& note) {
  const auto at = note.find("\nsize=");
  return at == std::string::npos ? 0 : std::strtoull(note.c_str() + at + 6, nullptr, 10);
}

}  // namespace

Meetings find_meetings(std::span<Trace> traces) {
  std::map<std::uint32_t, std::size_t> sizes;  // of communicators
  std::map<std::pair<std::uint32_t, std::uint32_t>, Meeting> found;
  for (std::size_t t = 0; t < traces.size(); ++t) {
    auto& trace = traces[t];
    std::vector<std::optional<Needs>> needs;
    for (const auto& counter : trace.counters)
      needs.push_back(needs_of(routine_name(trace, counter.key)));
    for (const auto& [id, text] : trace.notes)
      if (id.first == NoteKind::communicator)
        sizes[static_cast<std::uint32_t>(id.second)] = size_in(text);
    for (auto& call : trace.records) {
      if (!needs[call.counter]) continue;
      const auto& key = trace.counters[call.counter].key;
      auto& meeting = found[{key.communicator, call.sequence}];
      meeting.needs = *needs[call.counter];
      meeting.arrivals.push_back({t, &call, is_root(key, meeting.needs)});
    }
  }
  Meetings meetings;
  for (auto& [id, meeting] : found) {
    if (meeting.arrivals.size() == sizes[id.first])
      meetings.complete.push_back(std::move(meeting));
    else
      ++meetings.incomplete;
  }
  return meetings;
}

}  // namespace sinew::trace
