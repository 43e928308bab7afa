// The iterations of a run and the phases they fall into, found in its traces.
#pragma once

#include <string>
#include <string_view>

#include "report/activities.hpp"
#include "trace/profile.hpp"

namespace sinew::report {

/// Means over ranks.
struct Iteration {
  std::uint64_t number = 0;
  double begin_s = 0;  // from the start of the run
  Split split;
  double wire_bytes = 0;  // of a rank, at least (wire.hpp): modelled
  std::size_t phase = 0;
};

/// Iterations one after the other that communicate alike.
struct StepPhase {
  std::string name;  // "dense", "sparse", or by its number
  std::uint64_t first = 0, iterations = 0;
  Split split;                                                 // mean of an iteration
  double median_s = 0, p95_s = 0, longest_s = 0, error_s = 0;  // error: of the mean, 95 %
  double wire_bytes = 0;                                       // mean of an iteration and rank
  std::string pattern = {};  // "2 x MPI_Allreduce, MPI_Bcast": calls of an iteration of rank 0
};

struct Steps {
  bool marked = false;  // the program said where iterations begin; else loops were found
  std::vector<Iteration> iterations;
  std::vector<StepPhase> phases;
  std::vector<Interval> windows;  // of the iterations, on the first rank
};

/// Null if there is none of that name.
const StepPhase* phase_named(const Steps& steps, std::string_view name);

/// `dense_bytes`: of a whole gradient where it is known, else 0.
Steps find_steps(std::span<const trace::Trace> traces, const trace::Profile& profile,
                 std::span<const RankTime> times, double dense_bytes);

}  // namespace sinew::report
