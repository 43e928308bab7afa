// What `sinew bench` is asked to measure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/bench_sweep.hpp"
#include "measure/case.hpp"
#include "measure/control.hpp"

namespace sinew {

struct BenchOptions {
  std::vector<std::string> collectives;
  std::string ranks = "2", sizes, algorithm = "auto", buffers = "private", against, style = "nccl",
              imbalance = "zipf:1.2";
  std::string begin = "8", end = "16M", dtype = "f32", op = "sum", chunk, slot, frame, slice,
              sockbuf, folder, emulate;
  double factor = 4, budget_s = 0.2;
  int rounds = 3, root = 0;
  std::uint32_t samples = 0;
  std::int32_t warm_up = -1;  // calls; -1: by time
  bool check = true, json = false, percentiles = false, explain = false, rewrite = false,
       apart = false, no_bind = false, no_pull = false, no_checksum = false, ranks_given = false;
  std::vector<std::string> sweeps;
  BenchSetup setup;
};

/// Where the peers' programs are: beside the build's bin, or in the installed libexec.
std::string peer_folder();

/// Reads and checks the command line. --help gives the status to leave with.
std::optional<int> parse_bench(BenchOptions& o, int argc, char** argv);

/// Collectives by name; "all" are all, and alltoallv brings the padded alltoall beside it.
std::vector<bench::Collective> collectives_of(const BenchOptions& o);
std::vector<std::uint64_t> sizes_of(const BenchOptions& o);
BenchSetup setup_of(const BenchOptions& o);
/// What --sweep asks for, one after another.
std::vector<Sweep> sweeps_of(const BenchOptions& o);
bench::Limits limits_of(const BenchOptions& o);
bench::Case make_case(const BenchOptions& o, bench::Collective collective, std::uint64_t bytes,
                      int ranks);

}  // namespace sinew
