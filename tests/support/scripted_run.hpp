// Traces of a run that never was: what each rank did when, as a test wants it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/summary.hpp"
#include "trace/reader.hpp"

namespace sinew::test {

struct ScriptedCall {
  std::uint64_t bytes = 0;
  int peer = -1;
  std::string algorithm{};  // of one of our own collectives
};

class ScriptedRun {
 public:
  explicit ScriptedRun(int ranks);

  /// Key and value as a trace's information, on all ranks.
  void info(const std::string& key, const std::string& value);
  /// `seconds` from now on, on one rank. Collectives of MPI are of the world; "allreduce" and
  /// others without "MPI_" are our own.
  void call(int rank, const std::string& routine, double seconds, const ScriptedCall& what = {});
  /// The same while nothing passes: what another thread does meanwhile.
  void beside(int rank, const std::string& routine, double seconds, const ScriptedCall& what = {});
  /// All ranks: a collective that ends `seconds` after the last has come.
  void meet(const std::string& routine, double seconds, const ScriptedCall& what = {});
  void idle(int rank, double seconds);
  /// Marks what all ranks did since the last mark as an iteration.
  void end_iteration();

  [[nodiscard]] std::vector<trace::Trace> traces() const;
  [[nodiscard]] report::Summary summary(const report::SummaryOptions& options = {}) const;

 private:
  std::size_t counter(trace::Trace& trace, const std::string& routine, const ScriptedCall& what);
  void add(int rank, const std::string& routine, double begin, double end,
           const ScriptedCall& what);
  std::vector<trace::Trace> traces_;
  std::vector<double> now_, mark_;
  std::vector<std::uint32_t> collectives_;
  std::uint32_t iteration_ = 0;
};

}  // namespace sinew::test
