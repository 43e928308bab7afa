#include "transport/tcp/tcp_transport.hpp"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include <sinew/error.hpp>
#include "kernel/reduce.hpp"
#include "transport/tcp/relay.hpp"

namespace sinew::tcp {
namespace {

using namespace std::chrono_literals;

constexpr int kSleepFirst = 1000;  // waits that go straight to sleep after meeting a stranger
constexpr Clock::duration kStranger = 300us;    // a yield that took longer may have met one
constexpr Clock::duration kLongestSleep = 5ms;  // then the caller looks at its deadline
constexpr std::uint32_t kDryLooks = 256;        // attempts without park between two looks around

std::vector<Socket> take_control(Mesh& mesh) {
  std::vector<Socket> control;
  for (auto& sockets : mesh.sockets)
    control.push_back(sockets.empty() ? Socket() : std::move(sockets.front()));
  return control;
}

std::vector<std::vector<Connection>> take_data(Mesh& mesh, const Slots& slots, std::size_t chunk) {
  std::vector<std::vector<Connection>> connections(mesh.sockets.size());
  for (std::size_t peer = 0; peer < mesh.sockets.size(); ++peer)
    for (std::size_t slot = 1; slot < mesh.sockets[peer].size(); ++slot) {
      // Messages are never reduced on the way, so that their connection needs no bounce.
      const bool bounces = static_cast<int>(slot) != slots.of(kMessageChannel, 0);
      connections[peer].emplace_back(std::move(mesh.sockets[peer][slot]), bounces ? chunk : 0);
    }
  return connections;
}

int unread_bytes(const Socket& socket) {
  int bytes = 0;
  return ioctl(socket.get(), SIOCINQ, &bytes) == 0 ? bytes : 0;
}
int unsent_bytes(const Socket& socket) {
  int bytes = 0;
  return ioctl(socket.get(), SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

}  // namespace

TcpTransport::TcpTransport(const TcpJoin& join, Mesh mesh)
    : join_(join),
      cores_(mesh.cores),
      slots_{join.options.streams},
      chunk_(join.options.chunk),
      connections_(take_data(mesh, slots_, chunk_)),
      own_peers_(std::make_shared<Peers>(join.rank, join.epoch, take_control(mesh))),
      peers_(*own_peers_),
      hotline_(peers_, [this](const Regroup& whom, Deadline deadline,
                              const Check& check) { return regroup(whom, deadline, check); }),
      waiter_(peers_.descriptor(),
              2 * static_cast<std::size_t>(join.size) * static_cast<std::size_t>(slots_.count())),
      sending_(static_cast<std::size_t>(join.size) * kChannels),
      receiving_(sending_.size()),
      is_crowded_(join.size > cores_) {
  if (join_.check) join_.store = nullptr;  // both were for joining only
  join_.check = nullptr;
  if (const char* e = getenv("T_SPIN")) spins_ = atoi(e);
  if (const char* e = getenv("T_YIELD")) yields_ = atoi(e);
  for (auto* flows : {&sending_, &receiving_})
    for (std::size_t i = 0; i < flows->size(); ++i)
      (*flows)[i].next.resize(
          static_cast<std::size_t>(slots_.streams_of(static_cast<std::uint16_t>(i % kChannels))));
}

TcpTransport::~TcpTransport() {
  peers_.say_goodbye();
  if (!peers_.failed()) linger();
}

// Closing a connection on which something was never read resets it, and what we sent last may be
// lost on the way; so wait, not long, until it has arrived.
void TcpTransport::linger() noexcept {
  const auto until = Clock::now() + 1s;
  for (auto& all : connections_)
    for (auto& connection : all) {
      const auto& socket = connection.socket();
      shutdown(socket.get(), SHUT_WR);
      while (unread_bytes(socket) > 0 && unsent_bytes(socket) > 0 && Clock::now() < until)
        std::this_thread::sleep_for(1ms);
    }
}

// False: it is another transfer's turn.
bool TcpTransport::begin(Flow& flow, const Transfer& transfer, std::size_t bytes) noexcept {
  if (flow.turn == &transfer) return true;
  if (flow.turn != nullptr) return false;
  flow.turn = &transfer;
  flow.frames = std::max<std::uint64_t>(1, (bytes + chunk_ - 1) / chunk_);
  flow.done = 0;
  for (std::size_t stream = 0; stream < flow.next.size(); ++stream) flow.next[stream] = stream;
  return true;
}

Progress TcpTransport::send(Transfer& transfer, std::span<const std::byte> data) noexcept {
  auto& flow = this->flow(sending_, transfer);
  if (!begin(flow, transfer, data.size())) return Progress::pending;
  for (bool any = true; any && flow.done < flow.frames;) {
    any = false;
    for (std::size_t stream = 0; stream < flow.next.size(); ++stream) {
      if (flow.next[stream] >= flow.frames) continue;
      const auto progress = send_frame(transfer, data, flow, stream);
      if (progress == Progress::failed) return progress;
      any |= progress == Progress::done;
    }
  }
  if (flow.done < flow.frames) return not_parked();
  flow.turn = nullptr;
  return Progress::done;
}

Progress TcpTransport::send_frame(Transfer& transfer, std::span<const std::byte> data, Flow& flow,
                                  std::size_t stream) noexcept {
  auto& to = connection(transfer, stream);
  if (!waiter_.passes(to.out)) return Progress::pending;
  const auto offset = flow.next[stream] * chunk_;
  const auto payload = data.subspan(offset, std::min(chunk_, data.size() - offset));
  if (!to.is_sending()) {
    wire::Frame frame;
    frame.channel = transfer.channel;
    frame.epoch = join_.epoch;
    frame.source = static_cast<std::uint32_t>(join_.rank);
    frame.sequence = transfer.tag.sequence;
    frame.fingerprint = transfer.tag.fingerprint;
    frame.pass = transfer.pass;
    frame.offset = offset;
    frame.total = data.size();
    frame.length = static_cast<std::uint32_t>(payload.size());
    frame.summed = join_.options.checksum;
    if (frame.summed) frame.payload_sum = wire::sum_of(payload);
    to.begin(frame, payload);
  }
  switch (to.push(payload)) {
    case Connection::Io::whole:
      to.out.shut = false;
      moved_ = true;
      transfer.moved += payload.size();
      flow.next[stream] += flow.next.size();
      ++flow.done;
      return Progress::done;
    case Connection::Io::part:
      waiter_.shut(to.out);
      return Progress::pending;
    case Connection::Io::ended:
      break;
  }
  return ended(to.out, transfer.peer, true);
}

template <class Target>
Progress TcpTransport::receive(Transfer& transfer, std::span<std::byte> data,
                               Target target) noexcept {
  auto& flow = this->flow(receiving_, transfer);
  if (!begin(flow, transfer, data.size())) return Progress::pending;
  for (bool any = true; any && flow.done < flow.frames;) {
    any = false;
    for (std::size_t stream = 0; stream < flow.next.size(); ++stream) {
      if (flow.next[stream] >= flow.frames) continue;
      const auto progress = receive_frame(transfer, data, flow, stream, target);
      if (progress == Progress::failed) return progress;
      any |= progress == Progress::done;
    }
  }
  if (flow.done < flow.frames) return not_parked();
  flow.turn = nullptr;
  return Progress::done;
}

template <class Target>
Progress TcpTransport::receive_frame(Transfer& transfer, std::span<std::byte> data, Flow& flow,
                                     std::size_t stream, Target target) noexcept {
  auto& from = connection(transfer, stream);
  if (!waiter_.passes(from.in)) return Progress::pending;
  const auto offset = flow.next[stream] * chunk_;
  const auto wanted = data.subspan(offset, std::min(chunk_, data.size() - offset));
  const auto into = target.room(from, wanted);
  const auto io = from.pull(into);
  if (from.has_header() &&
      check_header(from, transfer, offset, wanted.size(), data.size()) == Progress::failed)
    return Progress::failed;
  switch (io) {
    case Connection::Io::whole:
      break;
    case Connection::Io::part:
      waiter_.shut(from.in);
      return Progress::pending;
    case Connection::Io::ended:
      return ended(from.in, transfer.peer, transfer.awaited || from.is_receiving());
  }
  const auto got = from.payload(into);
  if (from.arriving.summed && wire::sum_of(got) != from.arriving.payload_sum) [[unlikely]]
    return refuse(transfer.peer, Errc::peer_lost, "it carried a damaged payload");
  target.use(got, wanted);
  from.in.shut = false;
  from.finish();
  moved_ = true;
  transfer.moved += wanted.size();
  flow.next[stream] += flow.next.size();
  ++flow.done;
  return Progress::done;
}

Progress TcpTransport::check_header(Connection& from, const Transfer& transfer,
                                    std::uint64_t offset, std::size_t length,
                                    std::size_t total) noexcept {
  const auto refusal = wire::decode(from.header(), from.arriving);
  const auto& frame = from.arriving;
  if (refusal != wire::Refusal::none)
    return refuse(transfer.peer, Errc::peer_lost,
                  fmt::format("it carried {}", wire::name(refusal)));
  if (frame.kind != wire::Kind::data || frame.epoch != join_.epoch ||
      frame.source != static_cast<std::uint32_t>(transfer.peer) ||
      frame.channel != transfer.channel)
    return refuse(transfer.peer, Errc::peer_lost, "it carried a frame of another conversation");
  peers_.saw(transfer.peer, frame.sequence);
  if (frame.sequence != transfer.tag.sequence || frame.fingerprint != transfer.tag.fingerprint)
    return mismatched(transfer.peer);
  // The same operation on both sides, but with counts that only their owners know.
  if (frame.total != total || frame.pass != transfer.pass || frame.offset != offset ||
      frame.length != length) {
    poison({Errc::mismatch, transfer.peer,
            fmt::format("rank {} sends {} bytes where rank {} expects {}: their counts differ",
                        transfer.peer, frame.total, join_.rank, total)});
    return Progress::failed;
  }
  from.skip_header();
  return Progress::pending;
}

Progress TcpTransport::recv(Transfer& transfer, std::span<std::byte> data) noexcept {
  struct InPlace {
    static std::span<std::byte> room(Connection&, std::span<std::byte> wanted) { return wanted; }
    static void use(std::span<const std::byte> got, std::span<std::byte> wanted) {
      if (got.data() != wanted.data() && !got.empty())
        std::memcpy(wanted.data(), got.data(), got.size());
    }
  };
  return receive(transfer, data, InPlace{});
}

Progress TcpTransport::recv_reduce(Transfer& transfer, std::span<std::byte> data,
                                   const Reducer& reducer) noexcept {
  struct Reduced {
    const Reducer& reducer;
    static std::span<std::byte> room(Connection& from, std::span<std::byte> wanted) {
      return {from.bounce(), wanted.size()};
    }
    void use(std::span<const std::byte> got, std::span<std::byte> wanted) const {
      reducer.pair(wanted.data(), got.data(), got.size() / reducer.element_bytes);
    }
  };
  return receive(transfer, data, Reduced{reducer});
}

// Whoever tests but never parks must hear bad news as well.
Progress TcpTransport::not_parked() noexcept {
  if (++dry_ % kDryLooks != 0) return Progress::pending;
  return peers_.poll();
}

Progress TcpTransport::refuse(int peer, Errc code, const std::string& why) noexcept {
  poison({code, peer,
          fmt::format("rank {} gives up its connection to rank {}: {}", join_.rank, peer, why)});
  return Progress::failed;
}

Progress TcpTransport::ended(Gate& gate, int peer, bool awaited) noexcept {
  gate.descriptor = -1;
  return peers_.ended(peer, awaited);
}

Progress TcpTransport::park(bool moved, Deadline deadline) noexcept {
  dry_ = 0;
  if (moved || moved_) {
    idle_ = 0;
    moved_ = false;
    waiter_.next_round();
    return Progress::pending;
  }
  ++idle_;
  if (!is_crowded_ && idle_ <= spins_) {
    waiter_.look();
    return Progress::pending;
  }
  return park_slowly(deadline);
}

// Trying again is cheapest when whoever we wait for has a core of its own; a yield is cheap when
// the next in line is another rank; sleeping is dear, but the only way past a stranger on our core.
Progress TcpTransport::park_slowly(Deadline deadline) noexcept {
  if (peers_.failed()) return Progress::failed;
  if (is_crowded_ && sleep_first_ == 0 && idle_ <= yields_) {
    yield();
    return Progress::pending;
  }
  if (sleep_first_ > 0) --sleep_first_;
  const auto before = Clock::now();
  peers_.beat(before);
  const auto wait = std::clamp<Clock::duration>(deadline - before, 0ns, kLongestSleep);
  const bool news = waiter_.sleep(wait);
  if (news || Clock::now() >= before + wait) return peers_.poll();
  return Progress::pending;
}

void TcpTransport::yield() noexcept {
  const auto before = Clock::now();
  sched_yield();
  // The core was away for long, and still nothing has come: it was lent to a stranger.
  if (Clock::now() - before > kStranger && !waiter_.sees_any()) sleep_first_ = kSleepFirst;
  waiter_.look();
}

std::unique_ptr<Transport> TcpTransport::subset(std::span<const int> members,
                                                std::string_view label, Deadline deadline) {
  return join_tcp(part(members, label,
                       [this] {
                         if (peers_.poll() != Progress::failed) return;
                         const auto why = failure();
                         throw Error(why.code, why.why, {.rank = join_.rank, .peer = why.peer});
                       }),
                  deadline);
}

TcpJoin TcpTransport::part(std::span<const int> members, std::string_view label,
                           const Check& check) const {
  auto part = join_;
  part.group = fmt::format("{}/{}", join_.group, label);
  part.rank =
      static_cast<int>(std::find(members.begin(), members.end(), join_.rank) - members.begin());
  part.size = static_cast<int>(members.size());
  part.store = std::make_shared<Relay>(own_peers_, join_.rank,
                                       std::vector<int>(members.begin(), members.end()), check);
  part.check = check;
  return part;
}

// A rank that was given up finds the conclusion on its connections, as long as they are open.
std::unique_ptr<Transport> TcpTransport::regroup(const Regroup& whom, Deadline deadline,
                                                 const Check& check) {
  auto next = part(whom.members, whom.label, check);
  next.epoch = whom.epoch;
  next.previous = own_peers_;
  for (int peer = 0; peer < size(); ++peer)
    if (std::find(whom.members.begin(), whom.members.end(), peer) == whom.members.end() &&
        !peers_.is_gone(peer)) {
      next.kept.push_back(own_peers_);
      break;
    }
  return join_tcp(next, deadline);
}

}  // namespace sinew::tcp

namespace sinew {

std::unique_ptr<Transport> join_tcp(const TcpJoin& join, Deadline deadline) {
  const auto refuse = [](const std::string& why) { throw Error(Errc::invalid_argument, why); };
  if (join.size < 1 || join.rank < 0 || join.rank >= join.size)
    refuse(fmt::format("rank {} is not one of {}", join.rank, join.size));
  if (join.store == nullptr) refuse("ranks over tcp need a store to find each other");
  constexpr std::size_t kLeastChunk = 64;
  if (join.options.chunk < kLeastChunk || join.options.chunk > wire::kMostPayload ||
      join.options.chunk % kLeastChunk != 0)
    refuse(fmt::format("frames of {} bytes: choose a multiple of {} up to {}", join.options.chunk,
                       kLeastChunk, wire::kMostPayload));
  if (join.options.streams < 1 || join.options.streams > tcp::kMostStreams)
    refuse(fmt::format("{} streams: choose 1 to {}", join.options.streams, tcp::kMostStreams));
  return std::make_unique<tcp::TcpTransport>(join, tcp::connect_mesh(join, deadline));
}

}  // namespace sinew
