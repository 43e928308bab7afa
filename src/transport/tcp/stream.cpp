#include "transport/tcp/stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/uio.h>

#include <cstring>

namespace sinew::tcp {
namespace {

/// The parts that are not empty.
struct Parts {
  iovec parts[2];
  msghdr message{};

  Parts(std::span<const std::byte> head, std::span<const std::byte> rest) {
    for (const auto part : {head, rest})
      if (!part.empty())
        parts[message.msg_iovlen++] = {const_cast<std::byte*>(part.data()), part.size()};
    message.msg_iov = parts;
  }
};

bool is_transient(int error) { return error == EAGAIN || error == EINTR || error == ENOBUFS; }

// After a long silence a reset may come from a machine that has only given the connection up. Each
// machine answers the other's questions (see tune()) every few seconds while it is there.
bool was_near(const Socket& socket) noexcept {
  constexpr std::uint32_t kRecentMs = 12'000;
  tcp_info info{};
  socklen_t bytes = sizeof info;
  return getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
         info.tcpi_last_ack_recv < kRecentMs;
}

/// Goes on with the second part when the first is through.
template <class Part, class Move>
std::ptrdiff_t in_turn(Part head, Part rest, Move move) {
  const auto first = head.empty() ? 0 : move(head);
  if (first < 0 || static_cast<std::size_t>(first) < head.size() || rest.empty()) return first;
  const auto second = move(rest);
  return second < 0 && first > 0 ? first : first + second;
}

}  // namespace

std::ptrdiff_t Stream::send(std::span<const std::byte> head,
                            std::span<const std::byte> rest) noexcept {
  if (tls_) return in_turn(head, rest, [&](auto part) { return tls_->write(part); });
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  const Parts parts(head, rest);
  const auto sent = rest.empty() ? ::send(socket_.get(), head.data(), head.size(), kFlags)
                                 : ::sendmsg(socket_.get(), &parts.message, kFlags);
  if (sent >= 0) return sent;
  if (is_transient(errno)) return 0;
  error_ = errno;
  return kOver;
}

std::ptrdiff_t Stream::recv(std::span<std::byte> head, std::span<std::byte> rest) noexcept {
  if (tls_) return in_turn(head, rest, [&](auto part) { return tls_->read(part); });
  Parts parts(head, rest);
  const auto got = rest.empty() ? ::recv(socket_.get(), head.data(), head.size(), MSG_DONTWAIT)
                                : ::recvmsg(socket_.get(), &parts.message, MSG_DONTWAIT);
  if (got > 0) return got;
  if (got < 0 && is_transient(errno)) return 0;
  error_ = got < 0 ? errno : 0;
  return kOver;
}

bool Stream::was_closed() const noexcept {
  if (!tls_ && error_ == 0) return true;
  return !is_damaged() && (tls_ || error_ == ECONNRESET) && was_near(socket_);
}

std::string Stream::why() const {
  if (tls_) return tls_->why();
  return error_ == 0 ? "closed the connection" : std::string("is lost: ") + std::strerror(error_);
}

}  // namespace sinew::tcp
