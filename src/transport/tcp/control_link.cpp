#include "transport/tcp/control_link.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>

namespace sinew::tcp {
namespace {

// After a long silence a reset may come from a machine that has only given the connection up. Each
// machine answers the other's questions (see tune()) every few seconds while it is there.
bool was_near(const Socket& socket) noexcept {
  constexpr std::uint32_t kRecentMs = 12'000;
  tcp_info info{};
  socklen_t bytes = sizeof info;
  return getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
         info.tcpi_last_ack_recv < kRecentMs;
}

}  // namespace

bool ControlLink::send(const wire::Frame& frame, std::span<const std::byte> payload) noexcept {
  const auto bytes = wire::kHeaderBytes + payload.size();
  if (payload.size() > wire::kMostControl || bytes > out_.size() - waiting_) return false;
  auto sealed = frame;
  sealed.length = static_cast<std::uint32_t>(payload.size());
  sealed.summed = true;
  sealed.payload_sum = wire::sum_of(payload);
  const auto header = wire::encode(sealed);
  std::memcpy(out_.data() + waiting_, header.data(), header.size());
  if (!payload.empty())
    std::memcpy(out_.data() + waiting_ + header.size(), payload.data(), payload.size());
  waiting_ += bytes;
  flush();
  return true;
}

void ControlLink::flush() noexcept {
  if (waiting_ == 0) return;
  const auto sent = ::send(socket_.get(), out_.data(), waiting_, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent <= 0) return;  // if the connection is gone, read() says so
  waiting_ -= static_cast<std::size_t>(sent);
  std::memmove(out_.data(), out_.data() + sent, waiting_);
}

std::string ControlLink::read(const Handler& handler) {
  while (true) {
    const auto got = recv(socket_.get(), in_.data() + have_, in_.size() - have_, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    const int error = got < 0 ? errno : 0;
    // A reset is as good as an end, if the other machine was there a moment ago.
    was_closed_ = got == 0 || (error == ECONNRESET && was_near(socket_));
    if (got < 0) return std::strerror(error);
    if (got == 0) return "it was closed";
    have_ += static_cast<std::size_t>(got);
    if (auto fault = take_frames(handler); !fault.empty()) return fault;
  }
}

std::string ControlLink::take_frames(const Handler& handler) {
  std::size_t begin = 0;
  while (have_ - begin >= wire::kHeaderBytes) {
    wire::Frame frame;
    const std::span<const std::byte> rest(in_.data() + begin, have_ - begin);
    const auto refusal = wire::decode(rest.first<wire::kHeaderBytes>(), frame);
    if (refusal != wire::Refusal::none) return fmt::format("it carried {}", wire::name(refusal));
    if (frame.length > wire::kMostControl) return "it carried too long a control frame";
    if (rest.size() < wire::kHeaderBytes + frame.length) break;
    const auto payload = rest.subspan(wire::kHeaderBytes, frame.length);
    if (wire::sum_of(payload) != frame.payload_sum) return "it carried a damaged control frame";
    handler(frame, payload);
    begin += wire::kHeaderBytes + frame.length;
  }
  have_ -= begin;
  std::memmove(in_.data(), in_.data() + begin, have_);
  return {};
}

}  // namespace sinew::tcp
