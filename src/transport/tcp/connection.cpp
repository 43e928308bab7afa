#include "transport/tcp/connection.hpp"

#include <cstring>

namespace sinew::tcp {
Connection::Connection(Stream stream, std::size_t bounce_bytes)
    : in{stream.socket().get(), POLLIN},
      out{stream.socket().get(), POLLOUT},
      stream_(std::move(stream)),
      bounce_(bounce_bytes > 0 ? std::make_unique_for_overwrite<std::byte[]>(bounce_bytes)
                               : nullptr) {}

void Connection::begin(const wire::Frame& frame, std::span<const std::byte> payload) noexcept {
  const auto header = wire::encode(frame);
  std::memcpy(out_.data(), header.data(), header.size());
  if (is_short(payload.size()) && !payload.empty())
    std::memcpy(out_.data() + header.size(), payload.data(), payload.size());
  out_done_ = 0;
}

// What is left of a header and a payload after `done` bytes of both, as two parts. A short payload
// lies beside its header, and is one part with it.
template <class Byte>
std::pair<std::span<Byte>, std::span<Byte>> Connection::rest(std::span<Byte> header,
                                                             std::span<Byte> payload,
                                                             std::size_t done) noexcept {
  if (is_short(payload.size()))
    return {header.subspan(done, wire::kHeaderBytes + payload.size() - done), {}};
  if (done < wire::kHeaderBytes) return {header.subspan(done, wire::kHeaderBytes - done), payload};
  return {payload.subspan(done - wire::kHeaderBytes), {}};
}

Connection::Io Connection::push(std::span<const std::byte> payload) noexcept {
  const auto [head, body] = rest(std::span<const std::byte>(out_), payload, out_done_);
  const auto sent = stream_.send(head, body);
  if (sent < 0) return Io::ended;
  out_done_ += static_cast<std::size_t>(sent);
  if (out_done_ < wire::kHeaderBytes + payload.size()) return Io::part;
  out_done_ = kIdle;
  return Io::whole;
}

Connection::Io Connection::pull(std::span<std::byte> into) noexcept {
  const auto [head, body] = rest(std::span<std::byte>(in_), into, in_done_);
  const auto got = stream_.recv(head, body);
  if (got < 0) return Io::ended;
  in_done_ += static_cast<std::size_t>(got);
  return in_done_ < wire::kHeaderBytes + into.size() ? Io::part : Io::whole;
}

}  // namespace sinew::tcp
