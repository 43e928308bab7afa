#include "mpi/mpi_transport.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <xxhash.h>

#include <algorithm>

#include "base/relax.hpp"
#include "mpi/comms.hpp"
#include "mpi/waiting.hpp"

namespace sinew::mpi {
namespace {

using namespace std::chrono_literals;

// Looks, each a call of MPI, where ranks have a core each: longer than a chunk takes. A yield may
// give the core to a stranger for a whole slice, in each chunk anew.
constexpr int kSpinsAlone = 4000;
constexpr int kSpinsCrowded = 1;  // ranks share cores: whoever we wait for may need ours
constexpr int kYields = 1000;
constexpr Clock::duration kShortestSleep = 20us, kLongestSleep = 500us;
constexpr int kListenEvery = 64;          // yields, to control messages
constexpr std::uint32_t kListenOps = 16;  // and every so many operations, if there is no waiting
constexpr auto kSilent = 25ms;     // of waiting, before the others are told; then ten times that
constexpr auto kAnswer = 250ms;    // for a rank to tell what else it is in
constexpr auto kLastWords = 50ms;  // until MPI has taken them
constexpr auto kTakeBack = 500ms;  // for transfers that are under way when it all ends

}  // namespace

std::unique_ptr<Transport> MpiTransport::join(const PluginJoin& join) {
  Process::get().start();
  Process::get().poll_leaving();
  const auto comm = duplicate(MPI_COMM_WORLD, join.deadline);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  auto residents = exchange_residents(comm, join.deadline);
  for (std::size_t rank = 0; rank < residents.size(); ++rank)
    if (residents[rank].protocol != kProtocol)
      throw Error(Errc::unsupported,
                  fmt::format("rank {} speaks version {} of the mpi transport, this rank {}", rank,
                              residents[rank].protocol, kProtocol));
  return std::make_unique<MpiTransport>(comm, std::move(residents), join.describe);
}

MpiTransport::MpiTransport(MPI_Comm comm, std::vector<Resident> residents, Describe describe)
    : residents_(std::move(residents)),
      cores_(shared_cores(residents_)),
      node_of_(nodes_of(residents_)),
      describe_(describe) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &size_);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  wire_ = std::make_unique<Wire>(comm, rank_, size_);
  peers_.resize(static_cast<std::size_t>(size_));
  spin_limit_ = size_ <= cores_ ? kSpinsAlone : kSpinsCrowded;
  Process::get().add(*this);
}

MpiTransport::~MpiTransport() { close(); }

// MPI does not tell what its fabric costs. One of 100 Gbit/s and 2 us is assumed.
NodeLink MpiTransport::between_nodes() const noexcept {
  return node_of_.empty() ? NodeLink{} : NodeLink{.message_ns = 2000, .byte_ns = 0.08};
}

// Also called by MPI_Finalize, for communicators that are still there.
void MpiTransport::close() noexcept {
  if (!wire_) return;
  Process::get().remove(*this);
  if (!Process::is_alive()) return;
  if (is_lent())
    poison({Errc::peer_lost, rank_, fmt::format("rank {} left in the middle of a message", rank_)});
  const bool clean = !failed_;
  if (clean) {
    wire_->control.tell_left(history_.last().sequence);
    failure_ = {Errc::peer_lost, rank_, "MPI_Finalize was called"};
    failed_ = true;
  }
  const bool quiet = wire_->lanes.cancel_receives(Clock::now() + kTakeBack);
  wire_->control.push_out(Clock::now() + kLastWords);
  if (clean && quiet)
    Process::get().add(std::make_unique<Farewell>(std::move(wire_)));
  else
    wire_.release();  // NOLINT(bugprone-unused-return-value): messages under way stay MPI's
}

Progress MpiTransport::after(Lanes::Step step, const Transfer& transfer,
                             std::size_t bytes) noexcept {
  switch (step) {
    case Lanes::Step::done:
      return Progress::done;
    case Lanes::Step::pending:
      return Progress::pending;
    case Lanes::Step::other_operation:
      return mismatched(transfer.peer);
    case Lanes::Step::other_length:
      return wrong_length(transfer.peer, wire_->lanes.header().total, bytes);
    case Lanes::Step::broken:
      break;
  }
  return fail(Errc::peer_lost, transfer.peer,
              fmt::format("MPI, between ranks {} and {}: {}", rank_, transfer.peer,
                          error_text(wire_->lanes.error())));
}

Progress MpiTransport::send(Transfer& transfer, std::span<const std::byte> data) noexcept {
  if (failed_) [[unlikely]]
    return Progress::failed;
  return after(wire_->lanes.send(transfer, data), transfer, data.size());
}

// Long transfers are read out of the sender's memory, which waits kTakeBack for its readers when it
// gives up. So whoever was away for a while listens first. And whoever only tests for messages, and
// never waits, must hear that their sender has left.
bool MpiTransport::may_receive(const Transfer& transfer, std::size_t bytes) noexcept {
  constexpr std::int64_t kAwayMs = 200;
  constexpr std::uint32_t kLooks = 256;
  const bool due = transfer.channel == kMessageChannel && ++looks_ % kLooks == 0;
  if (!failed_ && (due || (bytes > kShort && coarse_ms() > listened_ms_ + kAwayMs))) listen();
  return !failed_;
}

Progress MpiTransport::recv(Transfer& transfer, std::span<std::byte> data) noexcept {
  if (!may_receive(transfer, data.size())) [[unlikely]]
    return Progress::failed;
  return after(wire_->lanes.recv(transfer, data), transfer, data.size());
}

Progress MpiTransport::recv_reduce(Transfer& transfer, std::span<std::byte> data,
                                   const Reducer& reducer) noexcept {
  if (!may_receive(transfer, data.size())) [[unlikely]]
    return Progress::failed;
  return after(wire_->lanes.recv_reduce(transfer, data, reducer), transfer, data.size());
}

void MpiTransport::enter(OpTag tag, const OpDescriptor& descriptor) noexcept {
  const auto op = to_wire(tag, descriptor);
  history_.add(op);
  if (failed_) return;
  wire_->lanes.enter(op);
  // A rank that never waits must empty its mailbox, too.
  if (tag.sequence % kListenOps == 0) listen();
}

Progress MpiTransport::park(bool moved, Deadline deadline) noexcept {
  if (failed_) [[unlikely]]
    return Progress::failed;
  if (moved) {
    idle_ = 0;
    return Progress::pending;
  }
  if (++idle_ <= spin_limit_) {
    relax();
    return Progress::pending;
  }
  return park_slowly(deadline);
}

// Nothing wakes a rank that sleeps, so naps are for long waits only: a rank that naps makes the
// others wait, and they would nap, too. Yields are worth less under MPICH, which starts each rank
// in a session of its own (Linux shares processors out between sessions first), but naps are worse.
Progress MpiTransport::park_slowly(Deadline deadline) noexcept {
  const auto now = Clock::now();
  const int slow = idle_ - spin_limit_;
  if (slow == 1) {
    waits_since_ = now;
    next_status_ = now + kSilent + size_ * 100us;
  }
  if (slow % kListenEvery == 0 || slow > kYields) {
    if (look_around() == Progress::failed) return Progress::failed;
    if (now > next_status_) {
      wire_->control.tell_status(history_);
      next_status_ = now + 10 * (now - waits_since_);
    }
  }
  if (slow <= kYields) {
    sched_yield();
  } else {
    const auto nap = std::min(kLongestSleep, kShortestSleep * (1 + (slow - kYields) / 16));
    sleep_for(std::clamp<Clock::duration>(deadline - now, 0ns, nap));
  }
  return Progress::pending;
}

// Ranks that wait for each other on different paths, and for those that are gone.
Progress MpiTransport::look_around() noexcept {
  listen();
  const auto mine = history_.last().sequence;
  for (int other = 0; other < size_ && !failed_; ++other)
    if (peer(other).left && peer(other).sequence < mine)
      return fail(Errc::peer_lost, other,
                  fmt::format("rank {} has left after operation #{}, but rank {} waits for it in "
                              "#{}",
                              other, peer(other).sequence, rank_, mine));
  return failed_ ? Progress::failed : Progress::pending;
}

void MpiTransport::listen() noexcept {
  listened_ms_ = coarse_ms();
  int from = -1;
  while (const auto* message = wire_->control.poll(from)) hear(from, *message);
}

void MpiTransport::hear(int from, const ControlMessage& message) noexcept {
  auto& them = peer(from);
  switch (message.kind) {
    case ControlMessage::Kind::status: {
      them.sequence = message.sequence;
      const auto difference = history_.compare(message.history);
      if (difference && !failed_) fail(Errc::mismatch, from, story(from, *difference));
      return;
    }
    case ControlMessage::Kind::here:
      them.here = message.label;
      return;
    case ControlMessage::Kind::left:
      them.sequence = message.sequence;
      them.left = them.closed = true;
      return;
    case ControlMessage::Kind::poison:
      if (!failed_) stop({static_cast<Errc>(message.code), message.peer, message.text});
      return;
    case ControlMessage::Kind::closed:
      them.closed = true;
      return;
  }
}

std::string MpiTransport::story(int peer, const Difference& difference) const {
  if (!difference.is_named())
    return fmt::format("ranks {} and {} called different operations", rank_, peer);
  return fmt::format("operation #{} differs: rank {} called {}, rank {} called {}",
                     difference.mine.sequence, rank_, describe_(from_wire(difference.mine)), peer,
                     describe_(from_wire(difference.theirs)));
}

// What came is of another operation. Where they parted may be further back: whoever waits will tell
// its history, or has found out itself; if nobody does, the header must do.
Progress MpiTransport::mismatched(int peer) noexcept {
  const auto theirs = wire_->lanes.header().op;
  wire_->control.tell_status(history_);
  for (const auto patience = Clock::now() + kAnswer; !failed_ && Clock::now() < patience;) {
    listen();
    sched_yield();
  }
  if (failed_) return Progress::failed;
  const auto difference = history_.compare({&theirs, 1});
  return fail(Errc::mismatch, peer,
              difference ? story(peer, *difference)
                         : fmt::format("ranks {} and {} called different operations", rank_, peer));
}

Progress MpiTransport::fail(Errc code, int peer, const std::string& why) noexcept {
  poison({code, peer, why});
  return Progress::failed;
}

void MpiTransport::poison(const Failure& failure) noexcept {
  if (failed_) return;
  wire_->control.tell_poison(history_.last().sequence, failure);
  stop(failure);
}

// The caller's buffers are about to go away. Nothing may be received into them any more, and what
// was sent from them must have arrived, or be known never to be read.
void MpiTransport::stop(const Failure& failure) noexcept {
  failure_ = failure;
  failed_ = true;
  const auto deadline = Clock::now() + kTakeBack;
  if (wire_->lanes.cancel_receives(deadline)) wire_->control.tell_closed();
  wire_->control.push_out(Clock::now() + kLastWords);
  while (is_lent() && Clock::now() < deadline) {
    listen();
    sched_yield();
  }
}

bool MpiTransport::is_lent() noexcept {
  for (int other = 0; other < size_; ++other)
    if (!peer(other).closed && wire_->lanes.is_lent_to(other)) return true;
  return false;
}

std::uint32_t MpiTransport::last_seen(int peer) const noexcept {
  const auto told = peers_[static_cast<std::size_t>(peer)].sequence;
  return wire_ ? std::max(told, wire_->lanes.seen(peer)) : told;
}

std::string MpiTransport::who_is_late() const {
  const auto mine = history_.last().sequence;
  std::string late;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_ || last_seen(other) >= mine) continue;
    late += fmt::format("{}rank {} was not heard to enter it (last heard in operation #{})",
                        late.empty() ? "" : ", ", other, last_seen(other));
  }
  return late.empty() ? "all ranks have entered it" : late;
}

std::unique_ptr<Transport> MpiTransport::subset(std::span<const int> members,
                                                std::string_view label, Deadline deadline) {
  if (failed_) throw Error(failure_.code, failure_.why);
  Process::get().poll_leaving();
  wait_for_members(members, label, deadline);
  const bool everyone =
      static_cast<int>(members.size()) == size_ && std::ranges::is_sorted(members);
  const auto comm = everyone ? duplicate(wire_->comm, deadline)
                             : create_group(wire_->comm, members, kControlTag + 1);
  std::vector<Resident> residents;
  for (const int member : members)
    residents.push_back(residents_[static_cast<std::size_t>(member)]);
  return std::make_unique<MpiTransport>(comm, std::move(residents), describe_);
}

// Making a group of some ranks waits for ever, so nobody begins before all are known to have come.
void MpiTransport::wait_for_members(std::span<const int> members, std::string_view label,
                                    Deadline deadline) {
  const auto wanted = XXH3_64bits(label.data(), label.size());
  wire_->control.push_out(deadline);
  wire_->control.tell_here(members, wanted);
  const auto is_missing = [&](int member) {
    return member != rank_ && peer(member).here != wanted;
  };
  for (int idle = 0; std::ranges::any_of(members, is_missing); ++idle) {
    listen();
    if (failed_) throw Error(failure_.code, failure_.why);
    if (Clock::now() > deadline) {
      std::string missing;
      for (const int member : members)
        if (is_missing(member)) missing += fmt::format(" {}", member);
      throw Error(Errc::timeout, fmt::format("rank {}: the communicator '{}' was not made in time; "
                                             "ranks that did not come:{}",
                                             rank_, label, missing));
    }
    idle < kYields ? void(sched_yield()) : sleep_for(kLongestSleep);
  }
}

}  // namespace sinew::mpi
