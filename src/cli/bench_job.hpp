// `sinew bench` as the ranks of an MPI job: all processes measure together, and rank 0 prints.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sinew/communicator.hpp>
#include "cli/bench_contender.hpp"
#include "measure/measure.hpp"
#include "measure/result.hpp"
#include "runtime/mpi_plugin.hpp"

namespace sinew {

/// The seat of this process where mpirun started several; else nothing.
std::optional<MpiSeat> bench_seat();

class BenchJob {
 public:
  /// Joins the others. `mpi`: which MPI, or "" to find out.
  BenchJob(const std::string& mpi, std::uint64_t chunk_bytes);
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
