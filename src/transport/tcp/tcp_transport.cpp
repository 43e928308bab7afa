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

namespace sinew::tcp {
namespace {

using namespace std::chrono_literals;

constexpr Clock::duration kLongestSleep = 5ms;  // then the caller looks at its deadline
constexpr std::uint32_t kDryLooks = 256;        // attempts without park between two looks around

std::vector<Stream> take_control(Mesh& mesh) {
  std::vector<Stream> control;
  for (auto& streams : mesh.streams)
    control.push_back(streams.empty() ? Stream() : std::move(streams.front()));
  return control;
}

std::vector<std::vector<Connection>> take_data(Mesh& mesh, const Slots& slots, std::size_t chunk) {
  std::vector<std::vector<Connection>> connections(mesh.streams.size());
  for (std::size_t peer = 0; peer < mesh.streams.size(); ++peer)
    for (std::size_t slot = 1; slot < mesh.streams[peer].size(); ++slot) {
      // Messages are never reduced on the way, so that their connection needs no bounce.
      const bool bounces = static_cast<int>(slot) != slots.of(kMessageChannel, 0);
      connections[peer].emplace_back(std::move(mesh.streams[peer][slot]), bounces ? chunk : 0);
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
      slice_bytes_(join.options.slice.value_or(mesh.on_one_host ? TcpOptions::kSliceOnOneHost : 0)),
      slots_{join.options.streams},
      chunk_(join.options.chunk),
      connections_(take_data(mesh, slots_, chunk_)),
      own_peers_(std::make_shared<Peers>(join.rank, join.epoch, take_control(mesh))),
      peers_(*own_peers_),
      hotline_(peers_, [this](const Regroup& whom, Deadline deadline,
                              const Check& check) { return regroup(whom, deadline, check); }),
      waiter_(peers_.descriptor(),
              2 * static_cast<std::size_t>(join.size) * static_cast<std::size_t>(slots_.count()),
              join.size > cores_),
      sending_(static_cast<std::size_t>(join.size) * kChannels),
      receiving_(sending_.size()) {
  if (join_.check) join_.store = nullptr;  // both were for joining only
  join_.check = nullptr;
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
      const auto& socket = connection.stream().socket();
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
      const auto progress = send_frames(transfer, data, flow, stream);
      if (progress == Progress::failed) return progress;
      any |= progress == Progress::done;
    }
  }
  if (flow.done < flow.frames) return not_parked();
  flow.turn = nullptr;
  return Progress::done;
}

// As many frames as go out together.
void TcpTransport::queue_frames(Connection& to, const Transfer& transfer,
                                std::span<const std::byte> data, const Flow& flow,
                                std::size_t stream) noexcept {
  wire::Frame frame;
  frame.channel = transfer.channel;
  frame.epoch = join_.epoch;
  frame.source = static_cast<std::uint32_t>(join_.rank);
  frame.sequence = transfer.tag.sequence;
  frame.fingerprint = transfer.tag.fingerprint;
  frame.pass = transfer.pass;
  frame.total = data.size();
  frame.summed = join_.options.checksum;
  for (auto next = flow.next[stream];
       next < flow.frames && to.queued_frames() < Connection::kMostQueued;
       next += flow.next.size()) {
    frame.offset = next * chunk_;
    const auto payload = data.subspan(frame.offset, std::min(chunk_, data.size() - frame.offset));
    frame.length = static_cast<std::uint32_t>(payload.size());
    if (frame.summed) frame.payload_sum = wire::sum_of(payload);
    to.queue(frame, payload);
  }
}

Progress TcpTransport::send_frames(Transfer& transfer, std::span<const std::byte> data, Flow& flow,
                                   std::size_t stream) noexcept {
  auto& to = connection(transfer, stream);
  if (!waiter_.passes(to.out)) return Progress::pending;
  if (to.queued_frames() == 0) queue_frames(to, transfer, data, flow, stream);
  std::size_t gone = 0;
  const auto io = to.push(gone);
  moved_ |= gone > 0;
  for (; gone > 0; --gone, ++flow.done) {
    transfer.moved += std::min(chunk_, data.size() - flow.next[stream] * chunk_);
    flow.next[stream] += flow.next.size();
  }
  switch (io) {
    case Connection::Io::whole:
      to.out.shut = false;
      return Progress::done;
    case Connection::Io::part:
      waiter_.shut(to.out);
      return Progress::pending;
    case Connection::Io::ended:
      break;
  }
  return ended(to, to.out, transfer.peer, true);
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
      if (transfer.channel == kMessageChannel) peers_.drained(transfer.peer);
      return ended(from, from.in, transfer.peer, transfer.awaited || from.is_receiving());
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
      frame.channel != transfer.channel || frame.summed != join_.options.checksum)
    return refuse(transfer.peer, Errc::peer_lost, "it carried a frame of another conversation");
  peers_.saw(transfer.peer, frame.sequence);
  if (frame.sequence != transfer.tag.sequence || frame.fingerprint != transfer.tag.fingerprint)
    return mismatched(transfer.peer);
  if (frame.total != total || frame.pass != transfer.pass || frame.offset != offset ||
      frame.length != length)
    return wrong_length(transfer.peer, frame.total, total);
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

Progress TcpTransport::ended(Connection& connection, Gate& gate, int peer, bool awaited) noexcept {
  gate.descriptor = -1;
  if (connection.stream().is_damaged())
    return refuse(peer, Errc::peer_lost, "it " + connection.stream().why());
  return peers_.ended(peer, awaited);
}

Progress TcpTransport::park(bool moved, Deadline deadline) noexcept {
  dry_ = 0;
  if (moved || moved_) {
    moved_ = false;
    waiter_.go_on();
    return Progress::pending;
  }
  if (waiter_.linger()) return Progress::pending;
  if (peers_.failed()) return Progress::failed;
  const auto before = Clock::now();
  peers_.beat(before);
  const auto most = std::clamp<Clock::duration>(deadline - before, 0ns, kLongestSleep);
  const bool news = waiter_.sleep(most);
  return news || Clock::now() >= before + most ? peers_.poll() : Progress::pending;
}

}  // namespace sinew::tcp
