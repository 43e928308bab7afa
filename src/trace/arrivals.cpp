#include "trace/arrivals.hpp"

#include <algorithm>

#include <sinew/trace.hpp>
#include <sinew/types.hpp>

namespace sinew::trace {
std::string routine_name(const Trace& trace, const Key& key) {
  if (key.kind == static_cast<std::uint8_t>(EventKind::call)) {
    if (key.operation == kOtherCalls) return "other calls";
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

std::vector<Waited> compare_arrivals(const Meetings& meetings) {
  std::vector<Waited> waited;
  for (const auto& [needs, arrivals] : meetings.complete) {
    std::uint64_t ready = 0;  // when the last who is needed had come
    for (const auto& arrival : arrivals)
      if (arrival.is_needed(needs)) ready = std::max(ready, arrival.call->begin_ns);
    for (const auto& arrival : arrivals) {
      auto& call = *arrival.call;
      const bool early = arrival.waits(needs) && ready > call.begin_ns;
      const double wait =
          early ? static_cast<double>(std::min(ready - call.begin_ns, call.duration_ns)) : 0;
      call.waited_ns = static_cast<float>(wait);
      waited.push_back({arrival.trace, call.counter, wait, static_cast<double>(call.duration_ns)});
    }
  }
  return waited;
}

}  // namespace sinew::trace
