#include "mpi/lanes.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace sinew::mpi {
namespace {

int as_int(std::size_t bytes) { return static_cast<int>(bytes); }  // a chunk or a frame at most

std::size_t frame_at(std::uint64_t offset, std::size_t total) {
  return std::min<std::size_t>(kFramePayload, total - offset);
}

std::size_t chunk_at(std::uint64_t offset, std::size_t total) {
  return std::min<std::size_t>(kChunkBytes, total - offset);
}

}  // namespace

Lanes::Lanes(MPI_Comm comm, int size, Counters& counters)
    : comm_(comm),
      counters_(counters),
      outgoing_(static_cast<std::size_t>(size) * kChannels),
      incoming_(outgoing_.size()),
      seen_(static_cast<std::size_t>(size)),
      frames_(new std::byte[outgoing_.size() * (kSlots + 1) * kFrameBytes]),
      bounce_(new std::byte[kChunkBytes * kBouncePairs * kInFlight]),
      bounce_taken_(kBouncePairs) {
  for (auto& lane : outgoing_) {
    std::fill(std::begin(lane.slots), std::end(lane.slots), MPI_REQUEST_NULL);
    std::fill(std::begin(lane.chunks), std::end(lane.chunks), MPI_REQUEST_NULL);
  }
  for (auto& lane : incoming_)
    std::fill(std::begin(lane.chunks), std::end(lane.chunks), MPI_REQUEST_NULL);
}

Lanes::Step Lanes::test(MPI_Request& request, MPI_Status* status) noexcept {
  int done = 0;
  if (const auto step = check(MPI_Test(&request, &done, status)); step != Step::done) return step;
  return done != 0 ? Step::done : Step::pending;
}

Lanes::Step Lanes::post_frame(Outgoing& lane, const Transfer& transfer,
                              std::span<const std::byte> payload, std::size_t total) noexcept {
  const auto slot = lane.next_slot % kSlots;
  if (const auto step = test(lane.slots[slot]); step != Step::done) return step;
  std::byte* const frame = outgoing_frame(index(transfer), slot);
  FrameHeader header;
  if (transfer.channel != kMessageChannel) header.op = op_;
  header.op.sequence = transfer.tag.sequence;
  header.op.fingerprint = transfer.tag.fingerprint;
  header.total = total;
  std::memcpy(frame, &header, sizeof header);
  if (!payload.empty()) std::memcpy(frame + sizeof header, payload.data(), payload.size());
  // One in each round of the slots waits for its receiver, or a sender that waits for nobody would
  // fill the receiver's memory.
  const auto post = slot == kSlots - 1 ? MPI_Issend : MPI_Isend;
  const auto step = check(post(frame, as_int(sizeof header + payload.size()), MPI_BYTE,
                               transfer.peer, transfer.channel, comm_, &lane.slots[slot]));
  if (step != Step::done) return step;
  ++lane.next_slot;
  lane.headed = true;
  ++counters_.sent[static_cast<std::size_t>(transfer.peer)];
  return Step::done;
}

Lanes::Step Lanes::send(Transfer& transfer, std::span<const std::byte> data) noexcept {
  auto& lane = outgoing_[index(transfer)];
  if (lane.turn != nullptr && lane.turn != &transfer) return Step::pending;
  if (lane.turn == nullptr) {
    lane.turn = &transfer;
    lane.headed = false;
    lane.posted = 0;
  }
  const auto total = data.size();
  while (!lane.headed || (total <= kShort && transfer.moved < total)) {
    const auto payload = total <= kShort ? frame_at(transfer.moved, total) : 0;
    const auto step = post_frame(lane, transfer, data.subspan(transfer.moved, payload), total);
    if (step != Step::done) return step;
    transfer.moved += payload;
  }
  while (transfer.moved < total) {
    while (lane.posted < total && lane.posted < transfer.moved + kInFlight * kChunkBytes) {
      const auto bytes = chunk_at(lane.posted, total);
      const auto step = check(MPI_Isend(data.data() + lane.posted, as_int(bytes), MPI_BYTE,
                                        transfer.peer, transfer.channel, comm_,
                                        &lane.chunks[lane.posted / kChunkBytes % kInFlight]));
      if (step != Step::done) return step;
      lane.posted += bytes;
      ++counters_.sent[static_cast<std::size_t>(transfer.peer)];
    }
    const auto step = test(lane.chunks[transfer.moved / kChunkBytes % kInFlight]);
    if (step != Step::done) return step;
    transfer.moved += chunk_at(transfer.moved, total);
  }
  lane.turn = nullptr;
  return Step::done;
}

Lanes::Step Lanes::take_frame(Incoming& lane, const Transfer& transfer, std::size_t payload,
                              std::size_t total) noexcept {
  std::byte* const frame = incoming_frame(index(transfer));
  if (lane.frame == MPI_REQUEST_NULL) {
    const auto step = check(MPI_Irecv(frame, as_int(kFrameBytes), MPI_BYTE, transfer.peer,
                                      transfer.channel, comm_, &lane.frame));
    if (step != Step::done) return step;
  }
  MPI_Status status;
  if (const auto step = test(lane.frame, &status); step != Step::done) return step;
  ++counters_.received[static_cast<std::size_t>(transfer.peer)];
  lane.headed = true;
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  std::memcpy(&header_, frame, sizeof header_);
  if (bytes < as_int(sizeof header_) || header_.magic != FrameHeader::kMagic) [[unlikely]]
    return check(MPI_ERR_OTHER);
  if (transfer.channel != kMessageChannel)
    seen_[static_cast<std::size_t>(transfer.peer)] = header_.op.sequence;
  if (header_.op.fingerprint != transfer.tag.fingerprint ||
      header_.op.sequence != transfer.tag.sequence) [[unlikely]]
    return Step::other_operation;
  if (header_.total != total) [[unlikely]]
    return Step::other_length;
  return bytes == as_int(sizeof header_ + payload) ? Step::done : check(MPI_ERR_OTHER);
}

// `into(lane, offset)`: where the chunk from there on is received, or null if it must wait.
// `consume(offset, data, bytes)`: takes what has arrived.
template <class Into, class Consume>
Lanes::Step Lanes::receive(Transfer& transfer, std::size_t total, Into into,
                           Consume consume) noexcept {
  auto& lane = incoming_[index(transfer)];
  if (lane.turn != nullptr && lane.turn != &transfer) return Step::pending;
  if (lane.turn == nullptr) {
    lane.turn = &transfer;
    lane.headed = false;
    lane.posted = 0;
  }
  while (!lane.headed || (total <= kShort && transfer.moved < total)) {
    const auto payload = total <= kShort ? frame_at(transfer.moved, total) : 0;
    const auto step = take_frame(lane, transfer, payload, total);
    if (step != Step::done) return step;
    if (payload > 0)
      consume(transfer.moved, incoming_frame(index(transfer)) + sizeof(FrameHeader), payload);
    transfer.moved += payload;
  }
  // The sender has committed itself to the rest, so holding buffers for it cannot end in a circle.
  while (transfer.moved < total) {
    while (lane.posted < total && lane.posted < transfer.moved + kInFlight * kChunkBytes) {
      std::byte* const where = into(lane, lane.posted);
      if (where == nullptr) return Step::pending;
      const auto step = check(MPI_Irecv(where, as_int(chunk_at(lane.posted, total)), MPI_BYTE,
                                        transfer.peer, transfer.channel, comm_,
                                        &lane.chunks[lane.posted / kChunkBytes % kInFlight]));
      if (step != Step::done) return step;
      lane.posted += chunk_at(lane.posted, total);
    }
    MPI_Status status;
    const auto bytes = chunk_at(transfer.moved, total);
    const auto step = test(lane.chunks[transfer.moved / kChunkBytes % kInFlight], &status);
    if (step != Step::done) return step;
    ++counters_.received[static_cast<std::size_t>(transfer.peer)];
    int arrived = 0;
    MPI_Get_count(&status, MPI_BYTE, &arrived);
    if (arrived != as_int(bytes)) [[unlikely]]
      return check(MPI_ERR_OTHER);
    consume(transfer.moved, into(lane, transfer.moved), bytes);
    transfer.moved += bytes;
  }
  if (lane.bounce >= 0) bounce_taken_[static_cast<std::size_t>(lane.bounce)] = 0;
  lane.bounce = -1;
  lane.turn = nullptr;
  return Step::done;
}

Lanes::Step Lanes::recv(Transfer& transfer, std::span<std::byte> data) noexcept {
  return receive(
      transfer, data.size(), [&](Incoming&, std::uint64_t offset) { return data.data() + offset; },
      [&](std::uint64_t offset, const std::byte* from, std::size_t bytes) {
        if (from != data.data() + offset) std::memcpy(data.data() + offset, from, bytes);
      });
}

Lanes::Step Lanes::recv_reduce(Transfer& transfer, std::span<std::byte> data,
                               const Reducer& reducer) noexcept {
  return receive(
      transfer, data.size(),
      [&](Incoming& lane, std::uint64_t offset) {
        return take_bounce(lane) ? bounce(lane.bounce, offset) : nullptr;
      },
      [&](std::uint64_t offset, const std::byte* from, std::size_t bytes) {
        reducer.pair(data.data() + offset, from, bytes / reducer.element_bytes);
      });
}

bool Lanes::take_bounce(Incoming& lane) noexcept {
  if (lane.bounce >= 0) return true;
  const auto free = std::find(bounce_taken_.begin(), bounce_taken_.end(), 0);
  if (free == bounce_taken_.end()) return false;
  *free = 1;
  lane.bounce = static_cast<int>(free - bounce_taken_.begin());
  return true;
}

bool Lanes::cancel_receives(Deadline deadline) noexcept {
  bool all = true;
  for (std::size_t lane = 0; lane < incoming_.size(); ++lane) {
    auto& incoming = incoming_[lane];
    MPI_Request* const posted[] = {&incoming.frame, &incoming.chunks[0], &incoming.chunks[1]};
    static_assert(kInFlight == 2);
    for (auto* request : posted) {
      if (*request == MPI_REQUEST_NULL) continue;
      MPI_Cancel(request);
      MPI_Status status;
      auto step = test(*request, &status);
      for (; step == Step::pending && Clock::now() < deadline; step = test(*request, &status))
        sched_yield();
      int cancelled = 0;
      if (step == Step::done) MPI_Test_cancelled(&status, &cancelled);
      if (step == Step::done && cancelled == 0) ++counters_.received[lane / kChannels];
      all &= step != Step::pending;
    }
  }
  return all;
}

bool Lanes::is_lent_to(int peer) noexcept {
  int done = 1;
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    auto& lane = outgoing_[static_cast<std::size_t>(peer) * kChannels + channel];
    int chunks = 0;
    MPI_Testall(kInFlight, lane.chunks, &chunks, MPI_STATUSES_IGNORE);
    done &= chunks;
  }
  return done == 0;
}

bool Lanes::all_sent() noexcept {
  int done = 1;
  for (auto& lane : outgoing_) {
    int slots = 0, chunks = 0;
    MPI_Testall(kSlots, lane.slots, &slots, MPI_STATUSES_IGNORE);
    MPI_Testall(kInFlight, lane.chunks, &chunks, MPI_STATUSES_IGNORE);
    done &= slots & chunks;
  }
  return done != 0;
}

}  // namespace sinew::mpi
