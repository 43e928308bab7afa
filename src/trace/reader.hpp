// Reads a trace file: all of it, or the part that is intact with a word on the rest.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trace/format.hpp"

namespace sinew::trace {

/// Calls with one key, of one thread. Times in nanoseconds.
struct Counter {
  Key key;
  std::uint16_t thread = 0;
  std::uint64_t calls = 0;
  std::uint64_t sent = 0, received = 0;  // bytes of all calls
  double total_ns = 0, shortest_ns = 0, longest_ns = 0;
  double waiting_ns = 0, in_flight_ns = 0;
};

struct RecordedCall {
  std::size_t counter = 0;     // index into Trace::counters
  std::uint64_t begin_ns = 0;  // CLOCK_MONOTONIC of the host
  std::uint64_t duration_ns = 0;
  std::uint64_t waiting_ns = 0;
  std::uint32_t sequence = 0;
  std::uint32_t stride = 1;  // one of so many was kept
  float waited_ns = -1;      // until the ranks it needed had come; below 0: not compared
};

struct Trace {
  std::uint64_t process = 0;
  std::uint64_t opened_ns = 0, opened_real_ns = 0;
  std::uint64_t latest_ns = 0;  // the last moment the writer looked at the clock
  std::string boot;             // hexadecimal
  bool closed = false;          // the process ended in order
  bool sealed = true;           // every block has its checksum
  std::uint64_t budget_bytes = 0;
  std::uint64_t greatest_stride = 1;
  bool lost_records = false;  // room ran out: records end early
  std::uint64_t lost_threads = 0;
  std::vector<Counter> counters;
  std::vector<RecordedCall> records;  // of each thread in order
  std::map<std::pair<NoteKind, std::uint64_t>, std::string> notes;
  std::vector<std::string> problems;  // what could not be read, one line each
};

/// Throws Error{invalid_argument} for what is no trace at all or lost its first block.
Trace read_trace(std::span<const std::byte> file);
/// Throws Error{system} when it cannot be opened; Errors name the path.
Trace read_trace_file(const std::string& path);

}  // namespace sinew::trace
