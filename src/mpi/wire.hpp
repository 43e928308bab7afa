// What crosses the wire: the header before every transfer, and control messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sinew/transport.hpp>

namespace sinew::mpi {

/// Changes with everything in this file; ranks compare it when they join.
inline constexpr std::uint32_t kProtocol = 1;

/// A transfer up to kShort travels in frames, each with a header and short enough that MPIs send it
/// at once, without asking the receiver. A longer one follows its header in chunks, straight from
/// the sender's memory.
inline constexpr std::size_t kFramePayload = 3968;
inline constexpr std::size_t kShort = std::size_t{16} << 10;
inline constexpr std::size_t kChunkBytes = std::size_t{256} << 10;
inline constexpr unsigned kInFlight = 2;  // chunks of a transfer, so that reducing overlaps

/// MPI tags: one a channel, so that channels do not wait for each other, and one for control.
inline constexpr int kControlTag = kChannels;

/// An operation as ranks compare it, in a fixed layout.
struct WireOp {
  std::uint32_t sequence = 0, fingerprint = 0;
  std::uint32_t kind = 0;  // collective, type and reduction, a byte each
  std::int32_t root = 0;
  std::uint64_t count = 0, algorithm = 0, tag = 0;
};
static_assert(sizeof(WireOp) == 40);

inline WireOp to_wire(OpTag tag, const OpDescriptor& d) noexcept {
  return {tag.sequence,
          tag.fingerprint,
          static_cast<std::uint32_t>(d.collective) | static_cast<std::uint32_t>(d.dtype) << 8 |
              static_cast<std::uint32_t>(d.op) << 16,
          d.root,
          d.count,
          d.algorithm,
          d.tag};
}
inline OpDescriptor from_wire(const WireOp& op) noexcept {
  return {static_cast<Collective>(op.kind & 0xff),
          static_cast<DType>(op.kind >> 8 & 0xff),
          static_cast<ReduceOp>(op.kind >> 16 & 0xff),
          op.root,
          op.count,
          op.algorithm,
          op.tag};
}

/// Before a frame's payload, and before the chunks of a long transfer.
struct FrameHeader {
  static constexpr std::uint32_t kMagic = 0x3146'4D53;  // "SMF1"
  std::uint32_t magic = kMagic, reserved = 0;
  WireOp op;
  std::uint64_t total = 0;  // bytes of the transfer
  std::uint64_t reserved2 = 0;
};
static_assert(sizeof(FrameHeader) == 64);
inline constexpr std::size_t kFrameBytes = sizeof(FrameHeader) + kFramePayload;

/// The last operations of a rank, the newest at op.sequence % kHistory.
inline constexpr std::uint32_t kHistory = 8;

struct ControlMessage {
  static constexpr std::uint32_t kMagic = 0x3143'4D53;  // "SMC1"
  enum class Kind : std::uint32_t {
    status,  // the sender waits in its last operation
    here,    // the sender has come to make the subset `label`
    left,    // the sender's communicator is gone
    poison,  // nobody shall use this communicator any more: code, peer, text
    closed,  // the sender has heard so, and will never again read what others send
  };
  std::uint32_t magic = kMagic;
  Kind kind{};
  std::uint32_t sequence = 0;  // the sender's last operation
  std::int32_t peer = -1;
  std::uint32_t code = 0, reserved = 0;
  std::uint64_t label = 0;
  WireOp history[kHistory];
  char text[512] = {};
};

}  // namespace sinew::mpi
