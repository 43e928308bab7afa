// What a medium between ranks must do: three non-blocking verbs, and shared memory where it exists.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <sinew/algorithms.hpp>
#include <sinew/error.hpp>
#include <sinew/types.hpp>

namespace sinew {

class Arena;
class Board;
class Hotline;
struct Reducer;

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

enum class Progress : std::uint8_t { pending, done, failed };

/// What an operation is, as its ranks must agree on it.
struct OpDescriptor {
  Collective collective{};
  DType dtype{};
  ReduceOp op{};
  std::int32_t root = 0;
  std::uint64_t count = 0;      // or kUneven and what else all ranks know alike
  std::uint64_t algorithm = 0;  // hash of its name
  std::uint64_t tag = 0;        // the caller's, to tell equal calls apart
  friend bool operator==(const OpDescriptor&, const OpDescriptor&) = default;
};

/// Which operation a transfer belongs to. The fingerprint covers the descriptors of this and all
/// earlier operations, so that a mismatch is noticed even if the peer has moved on.
struct OpTag {
  std::uint32_t sequence = 0;
  std::uint32_t fingerprint = 0;
};

/// The caller keeps the cursor: a transport has no request objects.
struct Transfer {
  int peer = -1;
  std::uint16_t channel = 0;
  OpTag tag;
  std::uint64_t moved = 0;
  std::uint32_t pass = 0;  // which slice of a sliced schedule
  bool awaited = true;     // false: whatever comes is taken, but nobody waits for it
};

/// Why a transport gave up: who, what, and whether the peer is gone or only different.
struct Failure {
  Errc code = Errc::peer_lost;
  int peer = -1;
  std::string why;
};

/// What a message between nodes costs on top of one inside a node.
struct NodeLink {
  double message_ns = 0;
  double byte_ns = 0;  // of what all ranks of a node send together
};

/// Channels a transport keeps apart: two for collectives, one for point-to-point messages.
inline constexpr std::uint16_t kChannels = 3;
inline constexpr std::uint16_t kMessageChannel = 2;

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;
  [[nodiscard]] virtual Capabilities capabilities() const noexcept = 0;
  /// Processors that all ranks share. Fewer than ranks: they take turns. Equal on all ranks.
  [[nodiscard]] virtual int cores() const noexcept { return size(); }

  /// The node of each rank: a host, or a memory domain of one. Empty: all are in one node. Equal on
  /// all ranks.
  [[nodiscard]] virtual std::span<const int> node_of() const noexcept { return {}; }
  /// Where there are several nodes. Equal on all ranks.
  [[nodiscard]] virtual NodeLink between_nodes() const noexcept { return {}; }

  /// Where messages are copied by the ranks' own processors: what of a chunk is best sent at once,
  /// so that it is still in a near cache when it is sent on: a multiple of 64. 0: all of it. Equal
  /// on all ranks.
  [[nodiscard]] virtual std::size_t slice_bytes() const noexcept { return 0; }

  /// Transfers of one (peer, channel, direction) progress in the order they were begun.
  virtual Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept = 0;
  virtual Progress recv(Transfer& transfer, std::span<std::byte> data) noexcept = 0;
  virtual Progress recv_reduce(Transfer& transfer, std::span<std::byte> data,
                               const Reducer& reducer) noexcept = 0;

  /// Shared memory of this rank's node, where there is one.
  virtual Board* board() noexcept { return nullptr; }
  /// Where buffers can be had that all ranks of the node can address.
  virtual Arena* arena() noexcept { return nullptr; }

  /// Says which operation this rank is in, so that others can tell what it is doing.
  virtual void enter(OpTag tag, const OpDescriptor& descriptor) noexcept = 0;

  /// Something may have moved since the last call, or not: wait a little, the longer the more often
  /// it is called in a row without `moved`. Returns failed when the communicator is poisoned or a
  /// peer is gone; failure() then says why.
  virtual Progress park(bool moved, Deadline deadline) noexcept = 0;

  /// From now on sleeping in park() ends also when this descriptor can be read. False: it does not.
  virtual bool also_wake_by(int /*descriptor*/) noexcept { return false; }

  /// Whether `peer` has left in good order: it sends and takes nothing more. What it sent before
  /// may still be there to be received.
  [[nodiscard]] virtual bool has_left(int /*peer*/) const noexcept { return false; }

  /// `peer` turned out to be gone: poisons, and returns failed.
  Progress lost(int peer) noexcept {
    poison({Errc::peer_lost, peer,
            "rank " + std::to_string(peer) + " is gone: its memory cannot be read"});
    return Progress::failed;
  }
  /// Both are in the same operation, but with counts that only their owners know, and that differ:
  /// poisons, and returns failed.
  virtual Progress wrong_length(int peer, std::uint64_t sent, std::uint64_t expected) noexcept {
    poison({Errc::mismatch, peer,
            "rank " + std::to_string(peer) + " sends " + std::to_string(sent) +
                " bytes where rank " + std::to_string(rank()) + " expects " +
                std::to_string(expected) + ": their counts differ"});
    return Progress::failed;
  }
  /// `peer` was found in another operation: poisons, and returns failed.
  virtual Progress mismatched(int peer) noexcept = 0;
  [[nodiscard]] virtual Failure failure() const = 0;
  /// What each late rank was last seen doing, for the text of a timeout.
  [[nodiscard]] virtual std::string who_is_late() const = 0;
  /// Tells every rank that this communicator is of no use any more. Sticky.
  virtual void poison(const Failure& failure) noexcept = 0;

  /// How ranks agree on who goes on after a failure; null: this transport cannot.
  virtual Hotline* hotline() noexcept { return nullptr; }
  /// The time by which deadlines are measured.
  [[nodiscard]] virtual Clock::time_point now() const noexcept { return Clock::now(); }

  /// A transport between some of the ranks. Called by all members, with equal arguments; `label`
  /// is unique on this transport.
  virtual std::unique_ptr<Transport> subset(std::span<const int> members, std::string_view label,
                                            Deadline deadline) = 0;
};

}  // namespace sinew
