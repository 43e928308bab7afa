// What the allreduces of a data-parallel training say: whether small ones are polling, whether the
// gradients are here at all, whether ranks are out of step. Figures first, words from them.
#pragma once

#include <optional>

#include "report/finding.hpp"

namespace sinew::report {

/// Small allreduces that ask whether there is work, beside the ones that do it. Of one rank.
struct Polling {
  int rank = 0, ranks = 0;
  std::uint64_t small_bytes = 0, small_calls = 0;
  double small_ns = 0;
  std::uint64_t steps = 0;  // calls of the size that moves the most
  std::uint64_t work_calls = 0, work_bytes = 0;
  double all_ns = 0, elapsed_ns = 0;  // of all allreduces, of the rank
  // Of the larger ones, the least that is called once a step: what size alone would cost.
  std::uint64_t next_bytes = 0;
  double next_mean_ns = 0;
  double quickest_ns = 0;              // of the small ones; 0: not known
  std::optional<double> waited_share;  // measured, of the small ones

  [[nodiscard]] double per_step() const;
  [[nodiscard]] double mean_ns() const;
};
std::optional<Polling> find_polling(const trace::Profile& profile);
Finding explain(const Polling& polling);

/// Many small allreduces and nothing that could be a gradient.
struct DataElsewhere {
  int rank = 0, ranks = 0;
  std::uint64_t small_bytes = 0, small_calls = 0;
  double small_ns = 0, elapsed_ns = 0;
  std::uint64_t largest_bytes = 0;  // of all messages of the rank
  std::uint64_t all_bytes = 0;      // of all its calls
  std::string largest_routine;
};
std::optional<DataElsewhere> find_data_elsewhere(const trace::Profile& profile);
Finding explain(const DataElsewhere& elsewhere);

/// Ranks that spend very different times in the same collectives: who comes late waits least.
struct OutOfStep {
  int ranks = 0, least = 0, median = 0, most = 0;
  double least_ns = 0, median_ns = 0, most_ns = 0, elapsed_ns = 0;
  double waited_ns = 0;  // at least, by all ranks together: what is above the least
};
std::optional<OutOfStep> find_out_of_step(const trace::Profile& profile);
Finding explain(const OutOfStep& skew);

/// By the ticks of a Horovod timeline: the rank that was last to be ready.
struct LastReady {
  int rank = 0;
  std::uint64_t times = 0, negotiations = 0;
  double waited_ns = 0, negotiated_ns = 0;
};
std::optional<LastReady> find_last_ready(const trace::Profile& profile);
Finding explain(const LastReady& last);

}  // namespace sinew::report
