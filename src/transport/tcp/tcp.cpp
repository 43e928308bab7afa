#include "transport/tcp/tcp.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sinew/error.hpp>
#include "transport/tcp/mesh.hpp"
#include "transport/tcp/tcp_transport.hpp"

namespace sinew::tcp {

std::unique_ptr<Transport> TcpTransport::subset(std::span<const int> members,
                                                std::string_view label, Deadline deadline) {
  auto part = join_;
  part.group = fmt::format("{}/{}", join_.group, label);
  part.rank =
      static_cast<int>(std::find(members.begin(), members.end(), join_.rank) - members.begin());
  part.size = static_cast<int>(members.size());
  return join_tcp(part, deadline);
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
