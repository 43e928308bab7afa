#include "trace/messages.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace sinew::trace {
namespace {

enum class Part { none, send, receive, post };  // post: of a receive, completed elsewhere

Part part_of(std::string_view name) {
  if (name.ends_with("_c")) name.remove_suffix(2);
  for (const std::string_view send : {"MPI_Send", "MPI_Ssend", "MPI_Bsend", "MPI_Rsend",
                                      "MPI_Isend", "MPI_Issend", "MPI_Ibsend", "MPI_Irsend"})
    if (name == send) return Part::send;
  if (name == "MPI_Recv" || name == "MPI_Mrecv") return Part::receive;
  return name == "MPI_Irecv" ? Part::post : Part::none;
}

struct Side {
  std::size_t trace;
  const RecordedCall* call;
  Part part;
};

/// What keeps its order: communicator, sender, receiver, tag.
using Lane = std::tuple<std::uint32_t, int, int, std::uint64_t>;

struct Ends {
  std::vector<Side> sends, receives;
};

std::map<Lane, Ends> lanes_of(std::span<const Trace> traces, std::span<const int> ranks) {
  std::map<Lane, Ends> lanes;
  for (std::size_t t = 0; t < traces.size(); ++t) {
    const auto& trace = traces[t];
    const int self = ranks[t];
    std::vector<Part> parts;
    for (const auto& counter : trace.counters)
      parts.push_back(part_of(routine_name(trace, counter.key)));
    for (const auto& call : trace.records) {
      const auto part = parts[call.counter];
      const auto& key = trace.counters[call.counter].key;
      if (part == Part::none || key.peer < 0) continue;
      if (part == Part::send)
        lanes[{key.communicator, self, key.peer, key.tag}].sends.push_back({t, &call, part});
      else
        lanes[{key.communicator, key.peer, self, key.tag}].receives.push_back({t, &call, part});
    }
  }
  return lanes;
}

/// Whether every call of the lane has its record.
bool is_complete(const Ends& ends) {
  const auto kept = [](const Side& side) { return side.call->stride == 1; };
  return ends.sends.size() == ends.receives.size() &&
         std::all_of(ends.sends.begin(), ends.sends.end(), kept) &&
         std::all_of(ends.receives.begin(), ends.receives.end(), kept);
}

void sort_by_begin(std::vector<Side>& sides) {
  std::stable_sort(sides.begin(), sides.end(), [](const Side& a, const Side& b) {
    return a.call->begin_ns < b.call->begin_ns;
  });
}

}  // namespace

Messages compare_messages(std::span<const Trace> traces, std::span<const int> ranks,
                          double error_ns) {
  Messages result;
  std::map<std::pair<int, int>, LateSender> pairs;
  for (auto& [lane, ends] : lanes_of(traces, ranks)) {
    if (!is_complete(ends)) {
      for (const auto& side : ends.receives) result.not_compared += side.part == Part::receive;
      continue;
    }
    sort_by_begin(ends.sends);
    sort_by_begin(ends.receives);
    const int sender = std::get<1>(lane), receiver = std::get<2>(lane);
    for (std::size_t i = 0; i < ends.sends.size(); ++i) {
      const auto& [trace, receive, part] = ends.receives[i];
      if (part != Part::receive) continue;
      const auto sent = ends.sends[i].call->begin_ns;
      const auto early = sent > receive->begin_ns ? sent - receive->begin_ns : 0;
      const auto wait = static_cast<double>(std::min(early, receive->duration_ns));
      result.waited.push_back(
          {trace, receive->counter, wait, static_cast<double>(receive->duration_ns)});
      auto& pair = pairs[{sender, receiver}];
      pair.sender = sender;
      pair.receiver = receiver;
      ++pair.messages;
      if (wait <= error_ns) continue;
      ++pair.late;
      pair.waited_ns += wait;
    }
  }
  for (const auto& [who, pair] : pairs)
    if (pair.late > 0) result.late.push_back(pair);
  std::stable_sort(result.late.begin(), result.late.end(),
                   [](const auto& a, const auto& b) { return a.waited_ns > b.waited_ns; });
  return result;
}

}  // namespace sinew::trace
