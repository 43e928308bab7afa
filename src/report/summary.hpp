// Everything a report prints, computed once: renderers print and do not calculate. Pure: no file,
// clock or output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/finding.hpp"
#include "trace/profile.hpp"

namespace sinew::report {

/// Calls of one routine with one size, or with sizes of one power of two.
struct SizeRow {
  std::uint64_t bytes = 0;  // of a power of two: the smallest, 0 for none
  std::uint64_t calls = 0;
  std::uint64_t moved = 0;  // bytes of all these calls, as callers gave them
  double seconds = 0;
};

struct Spread {
  std::uint64_t least = 0, mode = 0, median = 0, most = 0;
  double mean = 0;
  std::uint64_t distinct = 0;
};

/// One routine over all ranks.
struct RoutineSummary {
  std::string name;  // "MPI_Allreduce"
  std::uint64_t calls = 0, sent = 0, received = 0;
  double seconds = 0;
  double share = 0;                     // of all time in communication
  std::optional<double> waited_share;   // of the calls whose arrivals were compared
  std::optional<double> covered_share;  // of requests: of their life, outside the completing call
  std::vector<SizeRow> sizes;           // exact, by bytes; empty where none is known
  std::vector<SizeRow> bins;            // powers of two, by bytes
  Spread spread;                        // of the sizes, each call counting once
};

struct RankSummary {
  int rank = -1;
  std::string host;
  bool complete = true;  // the process ended in order
  std::uint64_t calls = 0, sent = 0, received = 0;
  double elapsed_s = 0, communication_s = 0;
  std::optional<double> waited_s;  // of communication_s
  /// Of the elapsed time: in communication that is not waiting, and outside of communication.
  [[nodiscard]] double moving_s() const { return communication_s - waited_s.value_or(0); }
  [[nodiscard]] double other_s() const { return std::max(0.0, elapsed_s - communication_s); }
};

/// Bytes from rank to rank, in point-to-point messages.
struct Matrix {
  std::vector<int> ranks;
  std::vector<std::vector<std::uint64_t>> sent;  // [from][to], by place in `ranks`
  [[nodiscard]] bool empty() const { return sent.empty(); }
};

struct Summary {
  std::string source;   // the tool it was imported from; empty: our own traces
  std::string command;  // of the ranks, where known
  std::string made_by;  // the MPI, or our own runtime
  std::vector<std::string> hosts;
  double elapsed_s = 0;                  // of the rank that took longest
  double communication_share = 0;        // of the elapsed time of all ranks
  std::optional<double> waited_share;    // of the time in communication, where it was compared
  std::uint64_t sent = 0, received = 0;  // over all ranks; 0: not told
  std::uint64_t given = 0;               // bytes that callers gave to all calls
  std::uint64_t calls = 0;
  std::vector<RoutineSummary> routines;  // the costliest first
  std::vector<RankSummary> ranks;
  Matrix matrix;
  std::vector<Finding> findings;   // the costliest first
  std::vector<std::string> notes;  // what the reader of the figures must know
  std::string verdict;             // one sentence
};

Summary summarize(const trace::Profile& profile);

/// What in a summary contradicts itself; empty when nothing does. summarize() turns each into a
/// finding, so that no report passes over one.
std::vector<std::string> contradictions(const Summary& summary);

}  // namespace sinew::report
