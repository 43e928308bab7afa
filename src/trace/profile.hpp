// What the traces of a job say together: calls, bytes and times by routine, communicator, size and
// peer, and how much of each collective was waiting for others. Pure: no file, clock or output.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "trace/messages.hpp"
#include "trace/phases.hpp"
#include "trace/reader.hpp"

namespace sinew::trace {

/// Sums of calls. Bytes and counts are exact.
struct Totals {
  std::uint64_t calls = 0, sent = 0, received = 0;
  std::uint64_t bytes = 0;  // as callers gave them
  double total_ns = 0, shortest_ns = 0, longest_ns = 0;
  double in_flight_ns = 0, blocked_ns = 0;  // of requests: post to completion, and inside its wait
  double waited_ns = 0;                     // of recorded collectives: until the last rank came
  double resolved_ns = 0;                   // time of the collectives that were compared
  std::uint64_t resolved = 0;
  void add(const Counter& counter);
  void add(const Totals& other);
};

struct ProfileKey {
  std::string routine;
  std::uint32_t communicator = 0;
  std::uint64_t bytes = 0;
  int peer = -1;
  std::string label, region;
  friend bool operator<(const ProfileKey& a, const ProfileKey& b) {
    const auto tied = [](const ProfileKey& key) {
      return std::tie(key.routine, key.communicator, key.bytes, key.peer, key.label, key.region);
    };
    return tied(a) < tied(b);
  }
};

struct RankProfile {
  int rank = -1;  // -1: MPI was never initialised
  int size = 0;
  std::uint64_t process = 0;
  std::string host, command, mpi;
  std::map<std::string, std::string> info;
  bool closed = false;
  double elapsed_ns = 0;        // from its first to its last moment in the trace
  double communication_ns = 0;  // in routines that communicate
  Totals all;
  std::map<std::string, Totals> routines;
  std::map<ProfileKey, Totals> rows;  // empty: only the sums of this rank are known
  std::vector<std::string> problems;
};

struct CommunicatorInfo {
  std::string name, members;
  int size = 0;
};

struct Profile {
  std::string source;              // the tool it was imported from; empty: our own traces
  std::vector<RankProfile> ranks;  // by rank
  std::map<std::string, Totals> routines;
  std::map<std::string, std::vector<double>> time_by_rank;    // nanoseconds, beside `ranks`
  std::map<std::string, std::vector<double>> waited_by_rank;  // of it, in compared collectives
  std::map<ProfileKey, Totals> rows;
  std::map<std::uint32_t, CommunicatorInfo> communicators;
  std::vector<LateSender> late_senders;  // the longest waits first
  std::vector<Phase> phases;             // of the first rank
  double own_cost_ns = 0;                // what the profiler adds to a call; 0: not known
  std::uint64_t greatest_stride = 1;
  double clock_error_ns = 0;          // of arrivals that were compared
  double clock_offset_ns = 0;         // the greatest between two hosts
  std::vector<std::string> warnings;  // what the reader of the figures must know
};

/// Calls so short that much of their time is the profiler's own.
inline bool is_too_short(const Totals& totals, double own_cost_ns) {
  return totals.calls > 0 && totals.total_ns < 5 * own_cost_ns * static_cast<double>(totals.calls);
}

Profile summarize(const std::vector<Trace>& traces);

/// Sums over ranks what each rank's `routines` and `rows` hold, and puts ranks in order.
void sum_over_ranks(Profile& profile);

/// Not for what begins and ends MPI, for files, and for steps of a collective that counts itself.
bool is_communication(std::string_view routine);

/// A number in `info`, if it is there and is one.
std::optional<double> info_number(const RankProfile& rank, const std::string& key);

}  // namespace sinew::trace
