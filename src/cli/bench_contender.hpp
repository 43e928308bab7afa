// Our side of a benchmark: one rank of a Sinew group as a contender.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sinew/communicator.hpp>
#include "measure/contender.hpp"
#include "measure/launch.hpp"

namespace sinew {

/// What is benchmarked, the same for all sizes of a run.
struct BenchSetup {
  std::string transport = "shm";
  std::string mpi;        // which, for ranks over mpi that this program starts
  std::string algorithm;  // "": choose
  bool shared_buffers = false;
  bool bind = true;                               // a core each, where there are enough
  bool pull = true;                               // let ranks read each other's memory
  std::uint64_t slot_bytes = 0, chunk_bytes = 0;  // 0: choose
  std::string schedule;                           // a document to install, or ""
};

/// What peers cannot do travels to our ranks in Case::options; "" for f32 sums.
struct BenchCase {
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
};
std::string to_options(const BenchCase& what);
BenchCase from_options(std::string_view options);

/// The collective of ours behind a bench collective ("allgatherv" is an allgather with counts).
Collective collective_of(bench::Collective collective);

/// One rank of a group. `communicator` is made with the setup's options.
std::unique_ptr<bench::Contender> make_contender(Communicator communicator,
                                                 const BenchSetup& setup);

/// Measures as one rank of a group until told to leave.
void serve_as_sinew(bench::Control& control, std::unique_ptr<Transport> transport,
                    const BenchSetup& setup);

/// Starts a group of Sinew ranks for a tournament.
bench::Launcher sinew_ranks(const BenchSetup& setup);

/// The `rank`-th processor this process may use, for itself alone.
void bind_to_core(int rank);

/// Every algorithm for a case, as the ranks would choose, cheapest first.
std::vector<Candidate> candidates(const bench::Case& what, int ranks, std::string_view transport);

/// The call a contender makes for a case, without pointers: for `--explain`.
Call call_for(const bench::Case& what, int ranks);

}  // namespace sinew
