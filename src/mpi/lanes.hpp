// Transfers between this rank and each other, in order for each (peer, channel, direction).
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "kernel/reduce.hpp"
#include "mpi/wire.hpp"

namespace sinew::mpi {

/// How many messages went to each rank and came from each: who leaves tells the others, so that
/// all that is still under way can be taken off the wire before the communicator's number is
/// used again.
struct Counters {
  explicit Counters(int size)
      : sent(static_cast<std::size_t>(size)), received(static_cast<std::size_t>(size)) {}
  std::vector<std::uint64_t> sent, received;
};

class Lanes {
 public:
  /// `comm` and `counters` must outlive it.
  Lanes(MPI_Comm comm, int size, Counters& counters);

  enum class Step : std::uint8_t {
    pending,
    done,
    other_operation,  // what came belongs to another operation than the transfer: see header()
    other_length,     // the same operation, but see header().total
    broken,           // MPI refused: see error()
  };
  Step send(Transfer& transfer, std::span<const std::byte> data) noexcept;
  Step recv(Transfer& transfer, std::span<std::byte> data) noexcept;
  Step recv_reduce(Transfer& transfer, std::span<std::byte> data, const Reducer& reducer) noexcept;

  /// What headers of collectives say from now on.
  void enter(const WireOp& op) noexcept { op_ = op; }
  [[nodiscard]] const FrameHeader& header() const noexcept { return header_; }
  [[nodiscard]] int error() const noexcept { return error_; }
  /// The latest operation that `peer` was seen in.
  [[nodiscard]] std::uint32_t seen(int peer) const noexcept {
    return seen_[static_cast<std::size_t>(peer)];
  }

  /// Takes back all receives, so that nothing is written to the caller's memory any more. False:
  /// one was under way and did not end by the deadline.
  bool cancel_receives(Deadline deadline) noexcept;
  /// Whether MPI may still read the caller's memory for `peer`.
  bool is_lent_to(int peer) noexcept;
  /// Whether MPI is done with everything that was sent.
  bool all_sent() noexcept;
  /// Memory for one message of any length that this rank may get.
  std::span<std::byte> waste() noexcept { return {bounce_.get(), kChunkBytes}; }

 private:
  static constexpr unsigned kSlots = 8;        // frames to one peer that MPI is not done with
  static constexpr unsigned kBouncePairs = 4;  // transfers that reduce at the same time
  struct Outgoing {
    const Transfer* turn = nullptr;  // begun and not finished: all others wait until it is
    bool headed = false;             // its first frame is on the way
    std::uint32_t next_slot = 0;
    std::uint64_t posted = 0;  // bytes, in chunks
    MPI_Request slots[kSlots];
    MPI_Request chunks[kInFlight];
  };
  struct Incoming {
    const Transfer* turn = nullptr;
    bool headed = false;       // its first frame has come
    int bounce = -1;           // pair of buffers it holds
    std::uint64_t posted = 0;  // bytes, in chunks
    MPI_Request frame = MPI_REQUEST_NULL;
    MPI_Request chunks[kInFlight];
  };
  [[nodiscard]] static std::size_t index(const Transfer& transfer) noexcept {
    return static_cast<std::size_t>(transfer.peer) * kChannels + transfer.channel;
  }
  [[nodiscard]] std::byte* outgoing_frame(std::size_t lane, unsigned slot) const noexcept {
    return frames_.get() + (lane * (kSlots + 1) + slot) * kFrameBytes;
  }
  [[nodiscard]] std::byte* incoming_frame(std::size_t lane) const noexcept {
    return outgoing_frame(lane, kSlots);
  }
  [[nodiscard]] std::byte* bounce(int pair, std::uint64_t offset) const noexcept {
    const auto half = offset / kChunkBytes % kInFlight;
    return bounce_.get() + (static_cast<std::size_t>(pair) * kInFlight + half) * kChunkBytes;
  }
  Step post_frame(Outgoing& lane, const Transfer& transfer, std::span<const std::byte> payload,
                  std::size_t total) noexcept;
  Step take_frame(Incoming& lane, const Transfer& transfer, std::size_t payload,
                  std::size_t total) noexcept;
  template <class Into, class Consume>
  Step receive(Transfer& transfer, std::size_t total, Into into, Consume consume) noexcept;
  bool take_bounce(Incoming& lane) noexcept;
  Step test(MPI_Request& request, MPI_Status* status = MPI_STATUS_IGNORE) noexcept;
  Step check(int status) noexcept {
    if (status == MPI_SUCCESS) [[likely]]
      return Step::done;
    error_ = status;
    return Step::broken;
  }

  MPI_Comm comm_;
  Counters& counters_;
  WireOp op_;
  FrameHeader header_;
  int error_ = MPI_SUCCESS;
  std::vector<Outgoing> outgoing_;  // by peer and channel
  std::vector<Incoming> incoming_;
  std::vector<std::uint32_t> seen_;
  // Untouched pages cost nothing, so lanes that are never used need no memory.
  std::unique_ptr<std::byte[]> frames_, bounce_;
  std::vector<std::uint8_t> bounce_taken_;
};

}  // namespace sinew::mpi
