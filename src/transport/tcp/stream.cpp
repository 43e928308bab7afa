#include "transport/tcp/stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/uio.h>

#include <array>
#include <cstring>

namespace sinew::tcp {
namespace {

/// The parts that are not empty.
struct Parts {
  std::array<iovec, Stream::kMostParts> vectors;
  msghdr message{};

  template <class Byte>
  explicit Parts(std::span<const std::span<Byte>> parts) {
    for (const auto part : parts)
      if (!part.empty())
        vectors[message.msg_iovlen++] = {const_cast<std::byte*>(part.data()), part.size()};
    message.msg_iov = vectors.data();
  }
  [[nodiscard]] bool is_one() const noexcept { return message.msg_iovlen == 1; }
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

/// Goes on with the next part when one is through.
template <class Byte, class Move>
std::ptrdiff_t in_turn(std::span<const std::span<Byte>> parts, Move move) {
  std::ptrdiff_t all = 0;
  for (const auto part : parts) {
    if (part.empty()) continue;
    const auto moved = move(part);
    if (moved < 0) return all > 0 ? all : moved;
    all += moved;
    if (static_cast<std::size_t>(moved) < part.size()) break;
  }
  return all;
}

}  // namespace

std::ptrdiff_t Stream::send(std::span<const std::span<const std::byte>> parts) noexcept {
  if (tls_) return in_turn(parts, [&](auto part) { return tls_->write(part); });
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  const Parts all(parts);
  const auto& one = all.vectors[0];
  const auto sent = all.is_one() ? ::send(socket_.get(), one.iov_base, one.iov_len, kFlags)
                                 : ::sendmsg(socket_.get(), &all.message, kFlags);
  if (sent >= 0) return sent;
  if (is_transient(errno)) return 0;
  error_ = errno;
  return kOver;
}

std::ptrdiff_t Stream::recv(std::span<const std::span<std::byte>> parts) noexcept {
  if (tls_) return in_turn(parts, [&](auto part) { return tls_->read(part); });
  Parts all(parts);
  const auto& one = all.vectors[0];
  const auto got = all.is_one() ? ::recv(socket_.get(), one.iov_base, one.iov_len, MSG_DONTWAIT)
                                : ::recvmsg(socket_.get(), &all.message, MSG_DONTWAIT);
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
