#include "transport/rendezvous/store_client.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <sinew/error.hpp>
#include "transport/trust/handshake.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
constexpr auto kAnswerTime = 30s;  // for what needs no waiting on the other side
constexpr auto kClosed = "closed the connection: rank 0 has ended";

Socket join(const Address& address, const Token& token, const Hello& me, Deadline deadline) {
  const auto begin = Clock::now();
  while (true) {
    auto socket = connect_to(address, deadline);
    Handshake handshake(socket.get(), Handshake::Role::connects, token, me);
    if (handshake.wait(deadline) == Progress::done) return socket;
    // A server that is crowded by strangers hangs up on the oldest of them, which may be us.
    if (!handshake.hung_up() || Clock::now() >= deadline)
      throw Error(handshake.hung_up() ? Errc::timeout : Errc::invalid_argument,
                  fmt::format("the store at {} {} (tried for {}); every rank needs the same "
                              "SINEW_RENDEZVOUS, SINEW_TOKEN and number of ranks",
                              to_string(address), handshake.why(), seconds_since(begin)),
                  {.rank = me.rank});
    std::this_thread::sleep_for(10ms);
  }
}

}  // namespace

StoreClient::StoreClient(Address address, const Token& token, Hello me, Deadline deadline)
    : address_(std::move(address)), rank_(me.rank) {
  me.purpose = Hello::Purpose::store;
  socket_ = join(address_, token, me, deadline);
}

StoreClient::~StoreClient() {
  // If it cannot be sent at once the server takes us for lost, which by now is true.
  const auto text = encode({.what = StoreFrame::What::leave});
  ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void StoreClient::set(std::string_view key, std::string_view value) {
  check_entry(key, value);
  const auto reply =
      ask({.what = StoreFrame::What::set, .key = std::string(key), .value = std::string(value)},
          Clock::now() + kAnswerTime);
  if (reply.what == StoreFrame::What::taken)
    throw_taken(key, to_string(address_), reply.value, value);
}

std::string StoreClient::get(std::string_view key, Deadline deadline) {
  check_entry(key, "");
  const auto begin = Clock::now();
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - begin).count();
  const auto wait = std::clamp<decltype(left)>(left, 0, 1 << 30);
  // The server's answer to a get that comes to nothing is better than our own.
  auto reply = ask({.what = StoreFrame::What::get,
                    .wait_ms = static_cast<std::uint32_t>(wait),
                    .key = std::string(key)},
                   std::max(deadline, begin) + 5s);
  if (reply.what == StoreFrame::What::absent)
    throw_absent(key, to_string(address_), begin, reply.value);
  return std::move(reply.value);
}

StoreFrame StoreClient::ask(const StoreFrame& request, Deadline deadline) {
  send(encode(request), deadline);
  StoreFrameReader reader;
  while (!reader.is_complete()) {
    const auto room = reader.room();
    const auto got = ::recv(socket_.get(), room.data(), room.size(), 0);
    if (got > 0) {
      reader.took(static_cast<std::size_t>(got));
    } else if (got == 0 || errno == ECONNRESET) {
      lose(kClosed);
    } else if (errno == EAGAIN) {
      if (!wait_for(socket_, POLLIN, deadline)) lose("fell silent");
    } else if (errno != EINTR) {
      lose(std::strerror(errno));
    }
  }
  auto reply = reader.take();
  if (reply.what == StoreFrame::What::lost)
    throw Error(Errc::peer_lost, fmt::format("'{}' will not come: {}", request.key, reply.value),
                {.rank = rank_});
  if (reply.what == StoreFrame::What::refused)
    throw Error(Errc::invalid_argument,
                fmt::format("the store at {}, asked for '{}', says: {}", to_string(address_),
                            request.key, reply.value),
                {.rank = rank_});
  return reply;
}

void StoreClient::send(std::string_view text, Deadline deadline) {
  while (!text.empty()) {
    const auto sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      text.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_for(socket_, POLLOUT, deadline)) lose("takes nothing");
    } else if (errno != EINTR) {
      lose(errno == EPIPE || errno == ECONNRESET ? kClosed : std::strerror(errno));
    }
  }
}

void StoreClient::lose(std::string_view how) {
  socket_ = Socket();  // an answer that came late would be taken for that of the next question
  throw Error(Errc::peer_lost, fmt::format("the store at {} {}", to_string(address_), how),
              {.rank = rank_, .peer = 0});
}

}  // namespace sinew
