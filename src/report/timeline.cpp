#include "report/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>

#include "trace/arrivals.hpp"

namespace sinew::report {
namespace {

using nlohmann::json;
using trace::NoteKind;
using trace::Trace;

std::string quoted(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

int rank_of(const Trace& trace, int otherwise) {
  for (const auto& [key, text] : trace.notes) {
    if (key.first != NoteKind::info) continue;
    const auto at = ("\n" + text).find("\nrank=");
    if (at != std::string::npos) return std::atoi(text.c_str() + at + 5);
  }
  return otherwise;
}

double micros(std::uint64_t ns) { return static_cast<double>(ns) / 1e3; }

}  // namespace

// Written piece by piece: a million slices as one JSON value would take a gigabyte.
std::string to_perfetto(std::span<const Trace> traces) {
  auto first = ~std::uint64_t{0};
  for (const auto& trace : traces)
    for (const auto& call : trace.records) first = std::min(first, call.begin_ns);
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  auto out = std::back_inserter(text);
  std::string_view comma = "\n";
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const auto& trace = traces[i];
    const int rank = rank_of(trace, static_cast<int>(i));
    fmt::format_to(
        out,
        "{}{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":\"rank "
        "{}\"}}}}",
        comma, rank, rank);
    comma = ",\n";
    std::vector<std::string> names;
    for (const auto& counter : trace.counters)
      names.push_back(quoted(trace::routine_name(trace, counter.key)));
    for (const auto& call : trace.records) {
      const auto& counter = trace.counters[call.counter];
      fmt::format_to(
          out,
          "{}{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"name\":{},"
          "\"args\":{{\"bytes\":{},\"peer\":{},\"communicator\":{}}}}}",
          comma, rank, counter.thread, micros(call.begin_ns - first), micros(call.duration_ns),
          names[call.counter], counter.key.bytes, counter.key.peer, counter.key.communicator);
    }
  }
  return text + "\n]}\n";
}

}  // namespace sinew::report
