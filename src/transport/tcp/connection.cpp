#include "transport/tcp/connection.hpp"

#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace sinew::tcp {
namespace {

/// What is left of a header and a payload after `done` bytes of both.
struct Rest {
  iovec parts[2];
  msghdr message{};

  Rest(const std::byte* header, const std::byte* payload, std::size_t bytes, std::size_t done) {
    std::size_t count = 0;
    const auto add = [&](const std::byte* from, std::size_t length) {
      parts[count++] = {const_cast<std::byte*>(from), length};
    };
    const auto in_payload = done > wire::kHeaderBytes ? done - wire::kHeaderBytes : 0;
    if (done < wire::kHeaderBytes) add(header + done, wire::kHeaderBytes - done);
    if (in_payload < bytes) add(payload + in_payload, bytes - in_payload);
    message.msg_iov = parts;
    message.msg_iovlen = count;
  }
};

bool is_transient(int error) { return error == EAGAIN || error == EINTR || error == ENOBUFS; }

}  // namespace

Connection::Connection(Socket socket, std::size_t bounce_bytes)
    : in{socket.get(), POLLIN},
      out{socket.get(), POLLOUT},
      socket_(std::move(socket)),
      bounce_(bounce_bytes > 0 ? std::make_unique_for_overwrite<std::byte[]>(bounce_bytes)
                               : nullptr) {}

void Connection::begin(const wire::Frame& frame, std::span<const std::byte> payload) noexcept {
  const auto header = wire::encode(frame);
  std::memcpy(out_.data(), header.data(), header.size());
  if (is_short(payload.size()) && !payload.empty())
    std::memcpy(out_.data() + header.size(), payload.data(), payload.size());
  out_done_ = 0;
}

Connection::Io Connection::push(std::span<const std::byte> payload) noexcept {
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  const auto all = wire::kHeaderBytes + payload.size();
  ssize_t sent = 0;
  if (is_short(payload.size())) {
    sent = send(socket_.get(), out_.data() + out_done_, all - out_done_, kFlags);
  } else {
    Rest rest(out_.data(), payload.data(), payload.size(), out_done_);
    sent = sendmsg(socket_.get(), &rest.message, kFlags);
  }
  if (sent < 0) return is_transient(errno) ? Io::part : Io::ended;
  out_done_ += static_cast<std::size_t>(sent);
  if (out_done_ < all) return Io::part;
  out_done_ = kIdle;
  return Io::whole;
}

Connection::Io Connection::pull(std::span<std::byte> into) noexcept {
  const auto all = wire::kHeaderBytes + into.size();
  ssize_t got = 0;
  if (is_short(into.size())) {
    got = recv(socket_.get(), in_.data() + in_done_, all - in_done_, MSG_DONTWAIT);
  } else {
    Rest rest(in_.data(), into.data(), into.size(), in_done_);
    got = recvmsg(socket_.get(), &rest.message, MSG_DONTWAIT);
  }
  if (got < 0) return is_transient(errno) ? Io::part : Io::ended;
  if (got == 0) return Io::ended;
  in_done_ += static_cast<std::size_t>(got);
  return in_done_ < all ? Io::part : Io::whole;
}

}  // namespace sinew::tcp
