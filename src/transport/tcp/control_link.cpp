#include "transport/tcp/control_link.hpp"

#include <fmt/format.h>

#include <cstring>

namespace sinew::tcp {

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
  const std::span<const std::byte> all = std::span(out_).first(waiting_);
  const auto sent = stream_.send(std::span(&all, 1));
  if (sent <= 0) return;  // if the connection is gone, read() says so
  waiting_ -= static_cast<std::size_t>(sent);
  std::memmove(out_.data(), out_.data() + sent, waiting_);
}

bool ControlLink::read(const Handler& handler) {
  while (true) {
    const auto room = std::span<std::byte>(in_).subspan(have_);
    const auto got = stream_.recv(std::span(&room, 1));
    if (got <= 0) return got == 0;
    have_ += static_cast<std::size_t>(got);
    if (!take_frames(handler)) return false;
  }
}

std::string ControlLink::why() const { return "it " + (fault_.empty() ? stream_.why() : fault_); }

bool ControlLink::take_frames(const Handler& handler) {
  const auto refuse = [&](std::string why) {
    fault_ = std::move(why);
    return false;
  };
  std::size_t begin = 0;
  while (have_ - begin >= wire::kHeaderBytes) {
    wire::Frame frame;
    const std::span<const std::byte> rest(in_.data() + begin, have_ - begin);
    const auto refusal = wire::decode(rest.first<wire::kHeaderBytes>(), frame);
    if (refusal != wire::Refusal::none)
      return refuse(fmt::format("carried {}", wire::name(refusal)));
    if (frame.length > wire::kMostControl) return refuse("carried too long a control frame");
    if (rest.size() < wire::kHeaderBytes + frame.length) break;
    const auto payload = rest.subspan(wire::kHeaderBytes, frame.length);
    if (wire::sum_of(payload) != frame.payload_sum)
      return refuse("carried a damaged control frame");
    handler(frame, payload);
    begin += wire::kHeaderBytes + frame.length;
  }
  have_ -= begin;
  std::memmove(in_.data(), in_.data() + begin, have_);
  return true;
}

}  // namespace sinew::tcp
