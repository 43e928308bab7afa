// Everything a report prints, computed once: renderers print and do not calculate. Pure: no file,
// clock or output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/run_answer.hpp"
#include "report/finding.hpp"
#include "report/lanes.hpp"
#include "report/model_view.hpp"
#include "report/quantity.hpp"
#include "report/steps.hpp"
#include "trace/profile.hpp"

namespace sinew::report {

/// Calls of one routine with one size, or with sizes of one power of two.
struct SizeRow {
  std::uint64_t bytes = 0;  // of a power of two: the smallest, 0 for none
  std::uint64_t calls = 0;
  std::uint64_t moved = 0;  // bytes of all these calls, as callers gave them
  std::uint64_t sent = 0;   // by them; 0: not told
  double seconds = 0, waited_s = 0;
};

struct Spread {
  std::uint64_t least = 0, mode = 0, median = 0, most = 0;
  double mean = 0;
  std::uint64_t distinct = 0;
};

/// One routine over all ranks.
struct RoutineSummary {
  std::string name;     // "MPI_Isend (values)"
  std::string routine;  // "MPI_Isend"
  std::uint64_t calls = 0, sent = 0, received = 0;
  double seconds = 0;
  double share = 0;                     // of all time in communication
  std::optional<double> waited_share;   // of the calls whose arrivals were compared
  std::optional<double> covered_share;  // of requests: of their life, outside the completing call
  std::vector<SizeRow> sizes;           // exact, by bytes; empty where none is known
  std::vector<SizeRow> bins;            // powers of two, by bytes
  Spread spread;                        // of the sizes, each call counting once
  double wire_bytes = 0;                // of all ranks, at least (wire.hpp): modelled
  /// A whole gradient over the largest and the smallest message; says nothing about what was sent.
  std::optional<std::pair<double, double>> reduction;
};

struct RankSummary {
  int rank = -1;
  std::string host;
  bool complete = true;  // the process ended in order
  std::uint64_t calls = 0, sent = 0, received = 0;
  double elapsed_s = 0, communication_s = 0;
  std::optional<double> waited_s;  // of communication_s
  std::optional<Split> split;      // by its records, where each call has one
  std::uint64_t last = 0;          // collectives to which it came last
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

/// Neighbouring iterations as one, so that a picture of any run stays small. Means.
struct StripCell {
  std::uint64_t number = 0, last = 0, count = 0;
  Split split;
  double wire_bytes = 0;
  std::size_t phase = 0;
};

/// Which algorithm served calls of which size.
struct AlgorithmRow {
  std::string routine;
  std::uint64_t from_bytes = 0;  // a power of two
  std::string algorithm;
  std::uint64_t calls = 0;
  double seconds = 0, waited_s = 0;
};

/// What a link can carry, and how one knows.
struct Link {
  Figure bytes_per_s;  // of a rank, one way
  std::string about;   // "12.5 GB/s, as stated"
};

/// How fast calls of a size moved their data, waiting left out.
struct BandwidthRow {
  std::string routine;
  std::uint64_t from_bytes = 0;  // a power of two
  std::uint64_t calls = 0;
  Figure bytes_per_s;  // of a rank
  std::optional<double> share_of_link;
};

struct Compression {
  std::string scheme;                // as told, or ""
  double dense_bytes = 0;            // of a whole gradient
  Modelled dense_wire, sparse_wire;  // of a rank and iteration, at least
  std::optional<Measured> dense_step_s, sparse_step_s;
  std::optional<Measured> dense_exposed_s, sparse_exposed_s;  // of an iteration
  std::optional<Measured> compress_s;                         // of an iteration
  std::optional<Assumed> target_density;
  std::optional<Figure> density;           // realised
  std::string density_from;                // how it is known
  std::optional<Measured> relative_error;  // of the sum against the dense one
  [[nodiscard]] double ratio() const { return over(dense_wire, sparse_wire).value; }
};

/// How unevenly ranks work. `busy` is what is no communication.
struct Imbalance {
  double mean_busy_s = 0, most_busy_s = 0;
  int busiest = -1;
  std::uint64_t compared = 0;  // collectives
  int last_rank = -1;          // who came last most often
  std::uint64_t last = 0;      // how often
};

struct SummaryOptions {
  std::optional<Network> network;          // calibrated, or stated as a line
  std::optional<double> link_bytes_per_s;  // stated
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
  Source times = Source::measured;  // assumed: whoever made the trace made its times up
  bool names_compute = false, names_data = false;  // whether the traces tell them apart
  Split split;                                     // mean over ranks, of those that have one
  Steps steps;
  std::vector<StripCell> strip;  // of the iterations, at most 240; never over two phases
  std::vector<Lane> lanes;
  Heat heat;
  std::vector<AlgorithmRow> algorithms;
  std::optional<Link> link;
  std::vector<BandwidthRow> bandwidth;  // the largest sizes of each routine first
  std::optional<Figure> link_use;       // mean over the run, of a rank: share of the link
  std::optional<Compression> compression;
  std::optional<Imbalance> imbalance;
  std::optional<int> cores;                                      // of a host, where told
  std::optional<ModelView> model;                                // where there is a network
  std::optional<RunAnswer> more_workers;                         // of a training run, with one
  std::vector<std::pair<std::string, std::string>> environment;  // what the first rank told
  std::vector<Finding> findings;                                 // the costliest first
  std::vector<std::string> disagreements;                        // of ranks on how often they met
  std::vector<std::string> notes;  // what the reader of the figures must know
  std::string verdict;             // one sentence
};

/// Of sums alone, as other tools write them.
Summary summarize(const trace::Profile& profile, const SummaryOptions& options = {});
/// Of our own traces, as trace::summarize_in_place() left them.
Summary summarize(const trace::Profile& profile, std::span<const trace::Trace> traces,
                  const SummaryOptions& options = {});

/// What in a summary contradicts itself; empty when nothing does. summarize() turns each into a
/// finding, so that no report passes over one.
std::vector<std::string> contradictions(const Summary& summary);

}  // namespace sinew::report
