// What ranks tell each other beside the data: where they wait, that they have left, that the
// communicator is of no use any more. Few and short, read at a low rate.
#pragma once

#include <mpi.h>

#include <optional>
#include <vector>

#include "mpi/history.hpp"
#include "mpi/lanes.hpp"

namespace sinew::mpi {

class Control {
 public:
  /// `comm` and `counters` must outlive it.
  Control(MPI_Comm comm, int rank, int size, Counters& counters);

  /// Tells all other ranks which operations this one was in last, and that it waits. Skipped while
  /// MPI is not done with the last time.
  void tell_status(const History& history) noexcept;
  void tell_left(std::uint32_t sequence) noexcept;
  void tell_poison(std::uint32_t sequence, const Failure& failure) noexcept;
  void tell_closed() noexcept;
  /// Tells those members (but not `rank`) that this rank has come for `label`.
  void tell_here(std::span<const int> members, std::uint64_t label) noexcept;

  /// The next message that has come, if any; valid until the next call.
  const ControlMessage* poll(int& from) noexcept;
  /// Whether MPI is done with everything that was told.
  bool all_sent() noexcept;
  /// The same, at most until then: who stops calling MPI must see its last words off.
  void push_out(Deadline deadline) noexcept;

 private:
  struct Told {  // one text to many, in MPI's hands until all requests are done
    ControlMessage message;
    std::vector<MPI_Request> requests;
  };
  void tell(Told& told, int to) noexcept;
  void tell_all(Told& told) noexcept;
  static bool is_sent(Told& told) noexcept;

  MPI_Comm comm_;
  int rank_, size_;
  Counters& counters_;
  Told status_, here_, last_words_, closed_;
  ControlMessage received_;
};

}  // namespace sinew::mpi
