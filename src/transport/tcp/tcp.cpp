#include "transport/tcp/tcp.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sinew/error.hpp>
#include "transport/tcp/mesh.hpp"
#include "transport/tcp/relay.hpp"
#include "transport/tcp/tcp_transport.hpp"

namespace sinew::tcp {

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
  if (const auto slice = join.options.slice.value_or(0); slice % kLeastChunk != 0)
    refuse(fmt::format("slices of {} bytes: choose a multiple of {}, or 0", slice, kLeastChunk));
  if (join.options.streams < 1 || join.options.streams > tcp::kMostStreams)
    refuse(fmt::format("{} streams: choose 1 to {}", join.options.streams, tcp::kMostStreams));
  return std::make_unique<tcp::TcpTransport>(join, tcp::connect_mesh(join, deadline));
}

}  // namespace sinew
