// How a rank leaves a communicator without waiting for the others. MPI hands the numbers of freed
// communicators out again, so before one is freed everything sent on it must have been taken off
// the wire, or it could turn up in its successor.
#pragma once

#include <mpi.h>

#include <memory>

#include "mpi/control.hpp"
#include "mpi/lanes.hpp"
#include "mpi/process.hpp"

namespace sinew::mpi {

/// One communicator and everything that MPI may still be reading or writing for it.
struct Wire {
  Wire(MPI_Comm c, int rank, int size)
      : comm(c), counters(size), lanes(c, size, counters), control(c, rank, size, counters) {}
  MPI_Comm comm;
  Counters counters;
  Lanes lanes;
  Control control;
};

class Farewell final : public Leaving {
 public:
  /// All receives on the wire must have ended.
  explicit Farewell(std::unique_ptr<Wire> wire) noexcept;
  bool poll() noexcept override;

 private:
  bool drain() noexcept;

  std::unique_ptr<Wire> wire_;
  std::vector<std::uint64_t> expected_;  // messages from each rank, once all have left
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace sinew::mpi
