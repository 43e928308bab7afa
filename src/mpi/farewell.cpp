#include "mpi/farewell.hpp"

namespace sinew::mpi {

// Every rank tells every other how much it has sent. This ends only when all have left.
Farewell::Farewell(std::unique_ptr<Wire> wire) noexcept
    : wire_(std::move(wire)), expected_(wire_->counters.sent.size()) {
  MPI_Ialltoall(wire_->counters.sent.data(), 1, MPI_UINT64_T, expected_.data(), 1, MPI_UINT64_T,
                wire_->comm, &request_);
}

bool Farewell::poll() noexcept {
  int all_left = 0;
  if (MPI_Test(&request_, &all_left, MPI_STATUS_IGNORE) != MPI_SUCCESS || all_left == 0)
    return false;
  if (!drain() || !wire_->lanes.all_sent() || !wire_->control.all_sent()) return false;
  MPI_Comm_free(&wire_->comm);
  return true;
}

bool Farewell::drain() noexcept {
  auto& received = wire_->counters.received;
  const auto waste = wire_->lanes.waste();
  while (received != expected_) {
    int waits = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, wire_->comm, &waits, &status) != MPI_SUCCESS ||
        waits == 0)
      return false;
    MPI_Recv(waste.data(), static_cast<int>(waste.size()), MPI_BYTE, status.MPI_SOURCE,
             status.MPI_TAG, wire_->comm, MPI_STATUS_IGNORE);
    ++received[static_cast<std::size_t>(status.MPI_SOURCE)];
  }
  return true;
}

}  // namespace sinew::mpi
