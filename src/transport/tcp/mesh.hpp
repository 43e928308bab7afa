// Connecting every rank to every other. Each listens while it joins, and no longer: afterwards
// nobody can reach a rank who is not connected to it.
#pragma once

#include <cstdint>
#include <vector>

#include "transport/tcp/stream.hpp"
#include "transport/tcp/tcp.hpp"

namespace sinew::tcp {

/// How many connections can carry one channel.
inline constexpr int kMostStreams = 16;

/// The connections between two ranks, by number: control, then the streams of each channel for
/// collectives, then point-to-point messages. A channel has connections of its own, so that data
/// nobody asks for yet cannot stand in the way of another channel's.
struct Slots {
  int streams = 1;
  [[nodiscard]] int count() const noexcept { return 2 + kMessageChannel * streams; }
  [[nodiscard]] int of(std::uint16_t channel, int stream) const noexcept {
    return 1 + channel * streams + stream;
  }
  [[nodiscard]] int streams_of(std::uint16_t channel) const noexcept {
    return channel == kMessageChannel ? 1 : streams;
  }
};

struct Mesh {
  std::vector<std::vector<Stream>> streams;  // [peer][slot]; none to itself
  int cores = 1;
  bool on_one_host = false;
  std::uint64_t strangers = 0;  // connections turned away while joining
};

Mesh connect_mesh(const TcpJoin& join, Deadline deadline);

/// How a rank describes itself to the others in the store.
struct Card {
  Address address;
  std::string host;    // of the machine, until it boots again
  std::string cpus;    // where the rank may run: hexadecimal, first processor last
  int quota = 0;       // processors that its group may use
  std::string agreed;  // options that must be the same on all ranks
};
std::string write_card(const Card& card);
/// Throws Error{invalid_argument} with the text.
Card read_card(const std::string& text);
/// Processors that all these ranks share, in proportion: with two machines, of which one has half
/// as many processors as ranks, half the number of ranks.
int shared_cores(const std::vector<Card>& cards);
/// Whether all they say to each other stays in one kernel. Network namespaces of one machine have
/// addresses of their own, and links between them.
bool are_on_one_host(const std::vector<Card>& cards);

}  // namespace sinew::tcp
