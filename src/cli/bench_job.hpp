// `sinew bench` as the ranks of an MPI job: all processes measure together, and rank 0 prints.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sinew/communicator.hpp>
#include "cli/bench_options.hpp"
#include "measure/measure.hpp"
#include "measure/result.hpp"
#include "runtime/mpi_plugin.hpp"

namespace sinew {

/// The seat of this process where mpirun started several; else nothing.
std::optional<MpiSeat> bench_seat();

/// Whether a process with this seat takes part. Rank 0 throws Error where the options make no sense
/// under mpirun; the others leave that to it, and print nothing later either.
bool sits_down(const BenchOptions& o, const MpiSeat& seat);

class BenchJob {
 public:
  /// Joins the others.
  explicit BenchJob(const BenchSetup& setup);
  ~BenchJob();
  BenchJob(const BenchJob&) = delete;
  BenchJob& operator=(const BenchJob&) = delete;

  [[nodiscard]] int size() const noexcept { return all_.size(); }
  void add(const std::string& name, const BenchSetup& setup);
  /// Like Tournament::play(), and the same on all ranks.
  bench::Result play(const bench::Case& what, int rounds, const bench::Limits& limits);

 private:
  class Meeting;
  struct Entrant {
    std::string name;
    std::unique_ptr<bench::Contender> contender;
  };
  bench::Turn take_turn(Entrant& entrant, const bench::Limits& limits, bench::Session* session);

  Communicator all_;
  std::unique_ptr<Meeting> meeting_;
  std::vector<Entrant> entrants_;
};

}  // namespace sinew
