#include "transport/tcp/connection.hpp"

#include <sys/uio.h>

#include <cerrno>

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

Connection::Io Connection::push(std::span<const std::byte> payload) noexcept {
  Rest rest(out_header_.data(), payload.data(), payload.size(), out_done_);
  const auto sent = sendmsg(socket_.get(), &rest.message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return is_transient(errno) ? Io::part : Io::ended;
  out_done_ += static_cast<std::size_t>(sent);
  if (out_done_ < wire::kHeaderBytes + payload.size()) return Io::part;
  out_done_ = kIdle;
  return Io::whole;
}

Connection::Io Connection::pull(std::span<std::byte> into) noexcept {
  Rest rest(in_header_.data(), into.data(), into.size(), in_done_);
  const auto got = recvmsg(socket_.get(), &rest.message, MSG_DONTWAIT);
  if (got < 0) return is_transient(errno) ? Io::part : Io::ended;
  if (got == 0) return Io::ended;
  in_done_ += static_cast<std::size_t>(got);
  return in_done_ < wire::kHeaderBytes + into.size() ? Io::part : Io::whole;
}

}  // namespace sinew::tcp
