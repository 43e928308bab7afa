#include "transport/shared_transport.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/relax.hpp"
#include "kernel/copy.hpp"
#include "kernel/reduce.hpp"
#include "transport/domain.hpp"
#include "transport/status_text.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

constexpr int kSpinsAlone = 2000;  // about 20-50 us: ranks have a core each
constexpr int kSpinsCrowded = 2;   // ranks share cores: whoever we wait for may need ours
constexpr int kLooksAlone = 64;    // before a board step goes back to its caller
constexpr int kYields = 2000;
constexpr int kTimedWaits = 8;           // one in so many waits, to notice strangers,
constexpr int kTimedYields = 8;          // and from this yield on in all
constexpr int kSuspicion = 16;           // yields in which a second long one counts
constexpr int kSleepFirst = 300;         // waits that go straight to sleep after long yields
constexpr auto kDescriptorDelay = 20ms;  // at most, between showing a position and its operation
constexpr auto kLongYield = 300us;       // it may have given the core to somebody who is none of us
constexpr auto kBusyByte = 5ns;          // ranks at work take less than that for each
constexpr std::chrono::nanoseconds kSilence = 100ms;  // of a rank that should be waiting like us
constexpr auto kLongestSleep = 5ms;                   // then look around whether everyone is alive

std::vector<int> nodes_in(const Segment& segment) {
  std::vector<int> domains;
  for (int rank = 0; rank < segment.ranks(); ++rank)
    domains.push_back(segment.status(rank).domain.load(std::memory_order_acquire) - 1);
  return nodes_from(domains);
}

}  // namespace

SharedTransport::SharedTransport(std::string_view name, std::shared_ptr<Segment> segment, int rank,
                                 int cores, std::unique_ptr<Watch> watch, Subset subset)
    : name_(name),
      segment_(std::move(segment)),
      rank_(rank),
      status_(segment_->status(rank)),
      cores_(cores),
      node_of_(nodes_in(*segment_)),
      doorbell_(*segment_, rank),
      board_(*segment_, doorbell_, rank),
      arena_(segment_, rank),
      watch_(std::move(watch)),
      dead_(static_cast<std::size_t>(segment_->ranks())),
      subset_(std::move(subset)),
      hotline_(*this, *segment_, subset_),
      sending_(static_cast<std::size_t>(segment_->ranks()) * kChannels),
      receiving_(sending_.size()),
      spin_limit_(segment_->ranks() <= cores ? kSpinsAlone : kSpinsCrowded) {
  if (segment_->ranks() <= cores) board_.set_patience(kLooksAlone);
  status_.base.store(reinterpret_cast<std::uintptr_t>(segment_->base()), std::memory_order_relaxed);
  status_.state.store(RankState::joined, std::memory_order_release);
}

SharedTransport::~SharedTransport() {
  doorbell_.disarm();
  status_.state.store(RankState::left, std::memory_order_release);
  doorbell_.wake_all();
}

// Another cache or memory controller: further, and a path that its ranks share. Assumed figures.
NodeLink SharedTransport::between_nodes() const noexcept {
  return node_of_.empty() ? NodeLink{} : NodeLink{.message_ns = 150, .byte_ns = 0.03};
}

Progress SharedTransport::send(Transfer& transfer, std::span<const std::byte> data) noexcept {
  auto& lane = segment_->lane(rank_, transfer.peer, transfer.channel);
  auto& mine = end(sending_, transfer);
  const auto fragment = segment_->options().lane_slot_bytes;
  if (mine.turn != nullptr && mine.turn != &transfer) return not_yet();
  mine.turn = &transfer;
  do {
    if (mine.next - mine.freed >= kLaneDepth) {
      // acquire pairs with the release in receive(): the slot has been read
      mine.freed = lane.freed.load(std::memory_order_acquire);
      if (mine.next - mine.freed >= kLaneDepth) return not_yet();
    }
    auto& slot = segment_->lane_slot(lane, mine.next);
    const auto bytes = std::min<std::uint64_t>(fragment, data.size() - transfer.moved);
    slot.length = static_cast<std::uint32_t>(bytes);
    slot.sequence = transfer.tag.sequence;
    slot.fingerprint = transfer.tag.fingerprint;
    slot.total = data.size();
    if (bytes > 0) std::memcpy(slot.payload(), data.data() + transfer.moved, bytes);
    // release pairs with the acquire in receive(): payload before stamp
    slot.stamp.store(++mine.next, std::memory_order_release);
    transfer.moved += bytes;
    doorbell_.ring(transfer.peer);
  } while (transfer.moved < data.size());
  mine.turn = nullptr;
  return Progress::done;
}

template <class Consume>
Progress SharedTransport::receive(Transfer& transfer, std::size_t total, Consume consume) noexcept {
  auto& lane = segment_->lane(transfer.peer, rank_, transfer.channel);
  auto& mine = end(receiving_, transfer);
  if (mine.turn != nullptr && mine.turn != &transfer) return not_yet();
  mine.turn = &transfer;
  do {
    auto& slot = segment_->lane_slot(lane, mine.next);
    // acquire pairs with the release in send()
    if (slot.stamp.load(std::memory_order_acquire) != mine.next + 1) return not_yet();
    if (slot.fingerprint != transfer.tag.fingerprint || slot.sequence != transfer.tag.sequence)
        [[unlikely]]
      return mismatched(transfer.peer);
    if (slot.total != total) [[unlikely]]
      return wrong_length(transfer.peer, slot.total, total);
    consume(slot.payload(), transfer.moved, slot.length);
    transfer.moved += slot.length;
    // release pairs with the acquire in send(): read before freed
    lane.freed.store(++mine.next, std::memory_order_release);
    doorbell_.ring(transfer.peer);
  } while (transfer.moved < total);
  mine.turn = nullptr;
  return Progress::done;
}

Progress SharedTransport::recv(Transfer& transfer, std::span<std::byte> data) noexcept {
  return receive(transfer, data.size(),
                 [&](const std::byte* from, std::uint64_t at, std::size_t bytes) {
                   if (bytes > 0) std::memcpy(data.data() + at, from, bytes);
                 });
}

Progress SharedTransport::recv_reduce(Transfer& transfer, std::span<std::byte> data,
                                      const Reducer& reducer) noexcept {
  return receive(transfer, data.size(),
                 [&](const std::byte* from, std::uint64_t at, std::size_t bytes) {
                   reducer.pair(data.data() + at, from, bytes / reducer.element_bytes);
                 });
}

void SharedTransport::enter(OpTag tag, const OpDescriptor& descriptor) noexcept {
  entered_ = tag;
  auto& entry = status_.history[tag.sequence % StatusLine::kHistory];
  entry.kind.store(pack_kind(descriptor), std::memory_order_relaxed);
  entry.count.store(descriptor.count, std::memory_order_relaxed);
  entry.algorithm.store(descriptor.algorithm, std::memory_order_relaxed);
  entry.tag.store(descriptor.tag, std::memory_order_relaxed);
  entry.sequence_and_fingerprint.store(std::uint64_t{tag.sequence} << 32 | tag.fingerprint,
                                       std::memory_order_release);
  status_.sequence.store(tag.sequence, std::memory_order_release);
}

Progress SharedTransport::park(bool moved, Deadline deadline) noexcept {
  if (moved) {
    idle_ = 0;
    doorbell_.disarm();
    slice_.restore();
    return Progress::pending;
  }
  if (++idle_ <= spin_limit_) {
    relax();
    return Progress::pending;
  }
  return park_slowly(deadline);
}

// Spinning is cheapest when whoever we wait for has a core of its own; a yield is cheap when the
// next in line is another rank; sleeping is dear, but the only way past a stranger on our core.
bool SharedTransport::announce_sleep() noexcept {
  board_.announce();
  const auto want = Want::anything();
  if (doorbell_.armed(want)) return false;
  doorbell_.arm(want);
  return true;
}

Progress SharedTransport::park_slowly(Deadline deadline) noexcept {
  board_.announce();
  if (segment_->header().poison.state.load(std::memory_order_acquire) ==
      PoisonRecord::State::poisoned)
    return Progress::failed;
  if (sleep_first_ == 0 && idle_ <= spin_limit_ + kYields) {
    // The clock is read in some waits only, in long ones, and after a long yield: reading it is a
    // good part of a short one.
    const int yields = idle_ - spin_limit_;
    if (yields == 1) ++waits_;
    if (waits_ % kTimedWaits != 0 && yields < kTimedYields && suspicion_ == 0) {
      sched_yield();
      return Progress::pending;
    }
    const auto before = Clock::now();
    sched_yield();
    const std::chrono::nanoseconds took = Clock::now() - before;
    // Another rank may have had the core for a long copy: then all is well.
    const bool lost =
        took > kLongYield && board_.work_of_others() < static_cast<std::uint64_t>(took / kBusyByte);
    if (lost && suspicion_ > 0) sleep_first_ = kSleepFirst;  // once may be an accident
    suspicion_ = lost ? kSuspicion : std::max(0, suspicion_ - 1);
    return Progress::pending;
  }
  const auto want = board_.take_want();
  if (!doorbell_.armed(want)) {
    doorbell_.arm(want);
    return Progress::pending;  // the caller looks once more before we sleep
  }
  if (sleep_first_ > 0) {
    --sleep_first_;
    slice_.shorten();
  }
  const auto now = Clock::now();
  status_.heard_ns.store(static_cast<std::uint64_t>(now.time_since_epoch().count()),
                         std::memory_order_relaxed);
  const auto left = std::max<Clock::duration>(deadline - now, 0ns);
  doorbell_.sleep(std::min<Clock::duration>(left, kLongestSleep));
  if (Clock::now() - last_look_ < kLongestSleep) return Progress::pending;
  last_look_ = Clock::now();
  return look_around();
}

Progress SharedTransport::look_around() noexcept {
  if (board_.find_mismatch()) return mismatched(board_.mismatch());
  const auto mine = status_.sequence.load(std::memory_order_relaxed);
  for (int peer = 0; peer < size(); ++peer) {
    const auto& status = segment_->status(peer);
    if (peer != rank_ && status.disagrees(entered_)) return mismatched(peer);
    if (status.state.load(std::memory_order_acquire) != RankState::left) continue;
    const auto theirs = status.sequence.load(std::memory_order_relaxed);
    if (theirs < mine) {
      poison({Errc::peer_lost, called(peer),
              fmt::format("rank {} has left after operation #{}, but rank {} waits for it in #{}",
                          called(peer), theirs, called(rank_), mine)});
      return Progress::failed;
    }
  }
  count_dead();
  for (int peer = 0; peer < size(); ++peer)
    if (dead_[static_cast<std::size_t>(peer)] && !has_left(peer)) {
      poison({Errc::peer_lost, called(peer),
              fmt::format("rank {} (pid {}) died", called(peer),
                          segment_->status(peer).pid.load(std::memory_order_relaxed))});
      return Progress::failed;
    }
  return Progress::pending;
}

// The watch tells of each death once.
void SharedTransport::count_dead() noexcept {
  if (!watch_) return;
  for (int dead = watch_->find_dead(); dead >= 0; dead = watch_->find_dead())
    dead_[static_cast<std::size_t>(dead)] = true;
}

bool SharedTransport::is_gone(int peer) noexcept {
  count_dead();
  return dead_[static_cast<std::size_t>(peer)] || has_left(peer);
}

// A rank shows its position a moment before it says what it is doing.
void SharedTransport::await_descriptor(int peer) const noexcept {
  const auto& theirs = segment_->status(peer);
  for (const auto until = Clock::now() + kDescriptorDelay; Clock::now() < until; sched_yield()) {
    const auto last = theirs.sequence.load(std::memory_order_acquire);
    const auto word = theirs.history[last % StatusLine::kHistory].sequence_and_fingerprint.load(
        std::memory_order_acquire);
    const auto shown = segment_->flag(peer).word.load(std::memory_order_acquire);
    if (static_cast<std::uint32_t>(word) == static_cast<std::uint32_t>(shown)) return;
  }
}

// The earliest operation both still remember and disagree on; the fingerprint covers them all.
Progress SharedTransport::mismatched(int peer) noexcept {
  await_descriptor(peer);
  const auto& mine = status_;
  const auto& theirs = segment_->status(peer);
  const auto last = mine.sequence.load(std::memory_order_relaxed);
  const auto oldest = last > StatusLine::kHistory ? last - StatusLine::kHistory + 1 : 1;
  std::string why =
      fmt::format("ranks {} and {} called different operations", called(rank_), called(peer));
  for (auto sequence = oldest; sequence <= last; ++sequence) {
    const auto& a = mine.history[sequence % StatusLine::kHistory];
    const auto& b = theirs.history[sequence % StatusLine::kHistory];
    if (a.sequence_and_fingerprint.load(std::memory_order_relaxed) >> 32 != sequence ||
        b.sequence_and_fingerprint.load(std::memory_order_acquire) >> 32 != sequence ||
        unpack(a) == unpack(b))
      continue;
    why = fmt::format("operation #{} differs: rank {} called {}, rank {} called {}", sequence,
                      called(rank_), describe(unpack(a)), called(peer), describe(unpack(b)));
    break;
  }
  poison({Errc::mismatch, called(peer), why});
  return Progress::failed;
}

Progress SharedTransport::wrong_length(int peer, std::uint64_t sent,
                                       std::uint64_t expected) noexcept {
  poison({Errc::mismatch, called(peer),
          fmt::format("rank {} sends {} bytes where rank {} expects {}: their counts differ",
                      called(peer), sent, called(rank_), expected)});
  return Progress::failed;
}

void SharedTransport::poison(const Failure& failure) noexcept {
  own_failure_ = failure;
  auto& record = segment_->header().poison;
  auto expected = PoisonRecord::State::clean;
  if (record.state.compare_exchange_strong(expected, PoisonRecord::State::writing)) {
    char text[sizeof(record.text)] = {};
    std::memcpy(text, failure.why.data(), std::min(failure.why.size(), sizeof(text) - 1));
    for (std::size_t i = 0; i < std::size(record.text); ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, text + 8 * i, 8);
      record.text[i].store(word, std::memory_order_relaxed);
    }
    record.code.store(static_cast<std::uint32_t>(failure.code), std::memory_order_relaxed);
    record.peer.store(failure.peer, std::memory_order_relaxed);
    // release pairs with the acquire in park_slowly() and failure()
    record.state.store(PoisonRecord::State::poisoned, std::memory_order_release);
  }
  doorbell_.wake_all();
}

Failure SharedTransport::failure() const {
  if (segment_->header().concluded.load(std::memory_order_acquire) != 0)
    return given_up(called(rank_));
  const auto& record = segment_->header().poison;
  // Another rank may be writing down why; if it died over it, what we know must do.
  const auto patience = Clock::now() + 100ms;
  while (record.state.load(std::memory_order_acquire) == PoisonRecord::State::writing &&
         Clock::now() < patience)
    sched_yield();
  if (record.state.load(std::memory_order_acquire) != PoisonRecord::State::poisoned)
    return own_failure_;
  char text[sizeof(record.text) + 1] = {};
  for (std::size_t i = 0; i < std::size(record.text); ++i) {
    const auto word = record.text[i].load(std::memory_order_relaxed);
    std::memcpy(text + 8 * i, &word, 8);
  }
  return {static_cast<Errc>(record.code.load(std::memory_order_relaxed)),
          record.peer.load(std::memory_order_relaxed), text};
}

std::string SharedTransport::last_seen(int peer) const {
  return last_seen_in(segment_->status(peer));
}

std::string SharedTransport::who_is_late() const {
  const auto mine = status_.sequence.load(std::memory_order_relaxed);
  std::string late;
  for (int peer = 0; peer < size(); ++peer) {
    const auto theirs = segment_->status(peer).sequence.load(std::memory_order_acquire);
    if (peer == rank_ || theirs >= mine) continue;
    late += fmt::format("{}rank {} has not entered it ({})", late.empty() ? "" : ", ", called(peer),
                        last_seen(peer));
  }
  if (!late.empty()) return late;
  // Whoever waits says so every few milliseconds; a rank that is silent is stopped or busy.
  const auto now = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  for (int peer = 0; peer < size(); ++peer) {
    const auto heard = segment_->status(peer).heard_ns.load(std::memory_order_relaxed);
    if (peer == rank_ || now < heard + kSilence.count()) continue;
    const auto pid = segment_->status(peer).pid.load(std::memory_order_relaxed);
    late += fmt::format(
        "{}rank {} has entered it but is silent{}{}", late.empty() ? "" : ", ", called(peer),
        heard > 0 ? fmt::format(" for {:.1f} s", static_cast<double>(now - heard) / 1e9) : "",
        pid != 0 && is_stopped(pid) ? fmt::format(" (process {} is stopped)", pid) : "");
  }
  return late.empty() ? "all ranks have entered it" : late;
}

std::unique_ptr<Transport> SharedTransport::subset(std::span<const int> members,
                                                   std::string_view label, Deadline deadline) {
  return subset_(members, label, deadline, [this] {
    const bool poisoned = segment_->header().poison.state.load(std::memory_order_acquire) ==
                          PoisonRecord::State::poisoned;
    if (!poisoned && look_around() != Progress::failed) return;
    const auto why = failure();
    throw Error(why.code, why.why, {.rank = rank_, .peer = why.peer});
  });
}

}  // namespace sinew
