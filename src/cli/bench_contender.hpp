// Our side of a benchmark: one rank of a Sinew group as a contender.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sinew/communicator.hpp>
#include "cli/bench_emulation.hpp"
#include "measure/contender.hpp"
#include "measure/launch.hpp"
#include "transport/tcp/tcp.hpp"

namespace sinew {

/// What is benchmarked, the same for all sizes of a run.
struct BenchSetup {
  std::string transport = "shm";
  std::string mpi;        // where that is mpi: which one
  std::string algorithm;  // "": choose
  bool shared_buffers = false;
  bool bind = true;                               // a core each, where there are enough
  bool pull = true;                               // let ranks read each other's memory
  std::uint64_t slot_bytes = 0, chunk_bytes = 0;  // 0: choose
  std::string net;                                // a file to choose algorithms by, or ""
  int trial_calls = -1;                           // as in Options
  std::string schedule;                           // a document to install, or ""
  std::string trace;                              // folder for a trace of each rank, or ""
  Emulation emulation;                            // of a cluster, if any
  TcpOptions tcp;                                 // where the transport is tcp
  Token token = Token::make();                    // the same
};

/// What peers cannot do travels to our ranks in Case::options; "" for f32 sums by the setup's
/// algorithm.
struct BenchCase {
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  std::string algorithm{};  // instead of the setup's
};
std::string to_options(const BenchCase& what);
BenchCase from_options(std::string_view options);

/// The collective of ours behind a bench collective ("allgatherv" is an allgather with counts).
Collective collective_of(bench::Collective collective);

/// What a rank does once it is connected: usually makes a contender and calls bench::serve().
using RankBody = std::function<void(bench::Control&, Communicator)>;
/// Starts a group of connected ranks.
bench::Launcher connected_ranks(const BenchSetup& setup, const RankBody& body);
/// Starts a group of Sinew ranks for a tournament.
bench::Launcher sinew_ranks(const BenchSetup& setup);

/// What our ranks are started with. Throws Error that names what is wrong with the model.
Options options_for(const BenchSetup& setup);

/// One rank as a contender.
std::unique_ptr<bench::Contender> make_contender(Communicator communicator,
                                                 const BenchSetup& setup);
/// The same, in the hands of the parent that measures.
void serve_as_sinew(bench::Control& control, std::unique_ptr<Transport> transport,
                    const BenchSetup& setup);

/// The `rank`-th processor this process may use, for itself alone.
void bind_to_core(int rank);

/// What ranks tell of the trial of a case once it is over: its algorithms, the winner first.
struct TrialRemark {
  struct Side {
    std::string algorithm;
    double measured_us = 0;
  };
  std::vector<Side> sides{};  // empty: there was none, or it is not over
};
std::string to_text(const TrialRemark& remark);
TrialRemark parse_trial_remark(std::string_view text);

/// What ranks so set up choose from, best first.
std::vector<Candidate> candidates_for(const bench::Case& what, int ranks, const BenchSetup& setup);

}  // namespace sinew
