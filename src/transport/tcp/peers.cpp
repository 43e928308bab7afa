#include "transport/tcp/peers.hpp"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sinew/error.hpp>
#include "transport/descriptor.hpp"

namespace sinew::tcp {
namespace {

using namespace std::chrono_literals;

constexpr Clock::duration kUnanswered = 20s;      // after which a machine is taken for gone
constexpr auto kFirstBeat = 10ms;                 // into a wait
constexpr Clock::duration kBetweenBeats = 200ms;  // at least
constexpr Clock::duration kRareBeats = 5s;        // in a wait that lasts
constexpr Clock::duration kSilence = 500ms;       // of a rank that should be waiting like us
constexpr auto kAnswer = 1s;                      // to the question what a rank has called
constexpr auto kExplain = 1s;                     // from a closed connection to its reason
constexpr std::size_t kMostNotices = 256;         // that nobody has asked for, from one rank

// Bytes that were sent and that the other machine has not acknowledged, whatever its rank is doing.
int in_flight(const Socket& socket) {
  int queued = 0, unsent = 0;
  if (ioctl(socket.get(), SIOCOUTQ, &queued) != 0 || ioctl(socket.get(), SIOCOUTQNSD, &unsent) != 0)
    return 0;
  return queued - unsent;
}

}  // namespace

Peers::Peers(int rank, std::uint32_t epoch, std::vector<Stream> control)
    : rank_(rank), epoch_(epoch), epoll_(epoll_create1(EPOLL_CLOEXEC)), states_(control.size()) {
  if (!epoll_.valid())
    throw Error(Errc::system, fmt::format("epoll_create1: {}", std::strerror(errno)));
  for (int peer = 0; peer < size(); ++peer) {
    auto& stream = control[static_cast<std::size_t>(peer)];
    const auto& socket = stream.socket();
    state(peer).open = socket.valid();
    if (socket.valid()) {
      state(peer).route =
          fmt::format("{} to {}", local_address(socket).text(), remote_address(socket).text());
      state(peer).heard = Clock::now();
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u32 = static_cast<std::uint32_t>(peer);
      if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0)
        throw Error(Errc::system, fmt::format("epoll_ctl: {}", std::strerror(errno)));
    }
    links_.emplace_back(std::move(stream));
  }
}

wire::Frame Peers::frame(wire::Kind kind) const noexcept {
  wire::Frame frame;
  frame.kind = kind;
  frame.epoch = epoch_;
  frame.source = static_cast<std::uint32_t>(rank_);
  frame.sequence = entered_.sequence;
  frame.fingerprint = entered_.fingerprint;
  return frame;
}

void Peers::enter(OpTag tag, const OpDescriptor& descriptor) noexcept {
  entered_ = tag;
  entered_lately_[tag.sequence % wire::kHistory] = {tag, descriptor};
  waits_since_ = {};
  beats_ = 0;
}

wire::History Peers::history() const noexcept {
  wire::History history;
  for (const auto& entry : entered_lately_)
    if (entry.tag.sequence != 0) history.entries[history.count++] = entry;
  return history;
}

void Peers::send_history(int peer, wire::Kind kind, bool asks) noexcept {
  auto header = frame(kind);
  header.total = asks ? 1 : 0;
  link(peer).send(header, wire::encode_history(history()).get());
}

Progress Peers::poll() noexcept {
  constexpr int kAtOnce = 16;
  std::array<epoll_event, kAtOnce> events{};
  while (!failed()) {
    const int ready = epoll_wait(epoll_.get(), events.data(), kAtOnce, 0);
    for (int i = 0; i < ready; ++i)
      read(static_cast<int>(events[static_cast<std::size_t>(i)].data.u32));
    if (ready < kAtOnce) break;
  }
  return look_around();
}

void Peers::read(int peer) {
  if (!state(peer).open) return;
  const bool goes_on =
      link(peer).read([&](const wire::Frame& frame, std::span<const std::byte> payload) {
        take(peer, frame, payload);
      });
  if (goes_on) return;
  state(peer).open = false;
  state(peer).gone = link(peer).was_closed();
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link(peer).socket().get(), nullptr);
  if (!state(peer).left)
    take_failure({Errc::peer_lost, peer,
                  fmt::format("rank {} is gone: its connection to rank {} ({}) ended: {}", peer,
                              rank_, state(peer).route, link(peer).why())});
}

void Peers::take(int peer, const wire::Frame& frame, std::span<const std::byte> payload) {
  if (frame.epoch != epoch_ || frame.source != static_cast<std::uint32_t>(peer)) return;
  auto& from = state(peer);
  from.heard = Clock::now();
  saw(peer, frame.sequence);
  switch (frame.kind) {
    case wire::Kind::data:
      break;
    case wire::Kind::heartbeat: {
      const auto& ours = entered_lately_[frame.sequence % wire::kHistory].tag;
      if (ours.sequence == frame.sequence && ours.fingerprint != frame.fingerprint) suspect_ = peer;
      break;
    }
    case wire::Kind::goodbye:
      from.left = frame.sequence;
      [[fallthrough]];
    case wire::Kind::history:
      if (wire::decode_history(payload, from.history)) ++from.histories;
      if (frame.kind == wire::Kind::history && frame.total == 1)
        send_history(peer, wire::Kind::history, false);
      break;
    case wire::Kind::poison:
      if (auto failure = wire::decode_failure(payload)) take_failure(*failure);
      break;
    case wire::Kind::notice:
      if (from.notices.size() < kMostNotices)
        from.notices.emplace_back(payload.begin(), payload.end());
      break;
    case wire::Kind::concluded:
      if (concluded_ == 0) conclude(frame.total);
      break;
    case wire::Kind::word:
      take_word(payload);
      break;
  }
}

// Everybody passes on what it learns once, so that it reaches all who can be reached at all.
void Peers::take_failure(const Failure& failure) {
  if (failed()) return;
  failure_ = failure;
  const auto payload = wire::encode_failure(failure);
  for (int peer = 0; peer < size(); ++peer)
    if (state(peer).open) link(peer).send(frame(wire::Kind::poison), payload);
}

void Peers::poison(const Failure& failure) noexcept { take_failure(failure); }

Progress Peers::look_around() noexcept {
  for (int peer = 0; peer < size() && !failed(); ++peer) {
    link(peer).flush();
    const auto& other = state(peer);
    if (other.left && *other.left < entered_.sequence)
      poison({Errc::peer_lost, peer,
              fmt::format("rank {} has left after operation #{}, but rank {} waits for it in #{}",
                          peer, *other.left, rank_, entered_.sequence)});
    if (!other.left && other.ended != Clock::time_point{} && Clock::now() > other.ended + kExplain)
      poison({Errc::peer_lost, peer,
              fmt::format("rank {} closed its data connection to rank {} ({}), and does not say "
                          "why",
                          peer, rank_, other.route)});
  }
  if (!failed() && suspect_ >= 0) return mismatched(std::exchange(suspect_, -1));
  return failed() ? Progress::failed : Progress::pending;
}

void Peers::beat(Clock::time_point now) noexcept {
  if (waits_since_ == Clock::time_point{}) waits_since_ = now;
  // The longer a wait, the rarer: a rank that computes for an hour must not find a full pipe.
  const auto pause = std::min(kRareBeats, kBetweenBeats * (1 + beats_ / 8));
  if (now < waits_since_ + kFirstBeat || now < last_beat_ + pause) return;
  last_beat_ = now;
  ++beats_;
  for (int peer = 0; peer < size(); ++peer) {
    if (!state(peer).open) continue;
    watch_machine(peer, now);
    if (link(peer).is_flushed()) link(peer).send(frame(wire::Kind::heartbeat), {});
  }
}

// A machine that has vanished closes nothing. (The kernel has an option for this, but it takes a
// rank that computes and does not read for a vanished one.)
void Peers::watch_machine(int peer, Clock::time_point now) noexcept {
  auto& since = state(peer).unanswered;
  if (in_flight(link(peer).socket()) == 0) {
    since = {};
  } else if (since == Clock::time_point{}) {
    since = now;
  } else if (now > since + kUnanswered) {
    poison({Errc::peer_lost, peer,
            fmt::format("the machine of rank {} has not answered rank {} ({}) for {:.0f} s", peer,
                        rank_, state(peer).route,
                        std::chrono::duration<double>(now - since).count())});
  }
}

Progress Peers::ended(int peer, bool awaited) noexcept {
  auto& other = state(peer);
  read(peer);
  if (!other.left && other.ended == Clock::time_point{}) other.ended = Clock::now();
  if (!failed() && other.left && awaited)
    poison({Errc::peer_lost, peer,
            fmt::format("rank {} has left after operation #{}, but rank {} still waits for it",
                        peer, *other.left, rank_)});
  return failed() ? Progress::failed : Progress::pending;
}

// Where both remember, and disagree, first: the fingerprint covers all operations so far.
std::string Peers::difference(int peer) const {
  const auto history = states_[static_cast<std::size_t>(peer)].history.get();
  std::vector<wire::Entered> theirs(history.begin(), history.end());
  std::sort(theirs.begin(), theirs.end(), [](const wire::Entered& a, const wire::Entered& b) {
    return a.tag.sequence < b.tag.sequence;
  });
  for (const auto& their : theirs) {
    const auto& our = entered_lately_[their.tag.sequence % wire::kHistory];
    if (our.tag.sequence != their.tag.sequence || our.descriptor == their.descriptor) continue;
    return fmt::format("operation #{} differs: rank {} called {}, rank {} called {}",
                       our.tag.sequence, rank_, describe(our.descriptor), peer,
                       describe(their.descriptor));
  }
  return fmt::format("ranks {} and {} called different operations", rank_, peer);
}

// The job is lost, so that a moment's wait for the other side of the story costs nothing.
Progress Peers::mismatched(int peer) noexcept {
  const auto known = state(peer).histories;
  const auto until = Clock::now() + kAnswer;
  if (state(peer).open) send_history(peer, wire::Kind::history, true);
  while (!failed() && state(peer).open && state(peer).histories == known && Clock::now() < until) {
    pollfd entry{epoll_.get(), POLLIN, 0};
    ::poll(&entry, 1, 10);
    for (int other = 0; other < size(); ++other) {
      link(other).flush();
      read(other);
    }
  }
  poison({Errc::mismatch, peer, difference(peer)});
  return Progress::failed;
}

void Peers::say_goodbye() noexcept {
  if (std::exchange(has_left_, true)) return;
  for (int peer = 0; peer < size(); ++peer)
    if (state(peer).open) send_history(peer, wire::Kind::goodbye, false);
}

std::string Peers::who_is_late() const {
  std::string late;
  const auto now = Clock::now();
  const auto add = [&](int peer, std::string_view what) {
    const auto silent = now - states_[static_cast<std::size_t>(peer)].heard;
    late += fmt::format("{}rank {} {} for {:.1f} s", late.empty() ? "" : ", ", peer, what,
                        std::chrono::duration<double>(silent).count());
  };
  for (int peer = 0; peer < size(); ++peer)
    if (const auto& other = states_[static_cast<std::size_t>(peer)];
        peer != rank_ && other.sequence < entered_.sequence)
      add(peer,
          fmt::format("has not entered it (last in operation #{}), or is silent", other.sequence));
  if (!late.empty()) return late;
  // Whoever waits says so now and then; a rank that is silent is stopped or busy.
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank_ && now > states_[static_cast<std::size_t>(peer)].heard + kSilence)
      add(peer, "has entered it but is silent");
  return late.empty() ? "all ranks have entered it" : late;
}

}  // namespace sinew::tcp
