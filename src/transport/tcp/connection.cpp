#include "transport/tcp/connection.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sinew::tcp {
Connection::Connection(Stream stream, std::size_t bounce_bytes)
    : in{stream.socket().get(), POLLIN},
      out{stream.socket().get(), POLLOUT},
      stream_(std::move(stream)),
      bounce_(bounce_bytes > 0 ? std::make_unique_for_overwrite<std::byte[]>(bounce_bytes)
                               : nullptr) {}

void Connection::queue(const wire::Frame& frame, std::span<const std::byte> payload) noexcept {
  const auto header = wire::encode(frame);
  if (queued_frames_ == 0) first_is_short_ = is_short(payload.size());
  if (queued_frames_ == 0 && first_is_short_) {
    std::memcpy(out_.data(), header.data(), header.size());
    if (!payload.empty()) std::memcpy(out_.data() + header.size(), payload.data(), payload.size());
    queue_part(std::span(out_).first(header.size() + payload.size()));
  } else {
    queue_part(out_headers_[queued_frames_] = header);
    queue_part(payload);
  }
  ++queued_frames_;
}

Connection::Io Connection::push(std::size_t& gone) noexcept {
  gone = 0;
  const auto sent = stream_.send(
      std::span(std::as_const(out_parts_)).subspan(sent_parts_, queued_parts_ - sent_parts_));
  if (sent < 0) return Io::ended;
  const auto before = sent_frames();
  auto more = static_cast<std::size_t>(sent);
  for (; sent_parts_ < queued_parts_; ++sent_parts_) {
    auto& part = out_parts_[sent_parts_];
    if (more < part.size()) {
      part = part.subspan(more);
      gone = sent_frames() - before;
      return Io::part;
    }
    more -= part.size();
  }
  gone = queued_frames_ - before;
  queued_parts_ = sent_parts_ = queued_frames_ = 0;
  return Io::whole;
}

// A short payload lies beside its header, and is one part with it.
Connection::Io Connection::pull(std::span<std::byte> into) noexcept {
  const auto whole = wire::kHeaderBytes + into.size();
  const auto beside = is_short(into.size()) ? whole : wire::kHeaderBytes;
  std::array<std::span<std::byte>, 2> parts;
  if (in_done_ < beside) parts[0] = std::span(in_).subspan(in_done_, beside - in_done_);
  if (beside < whole) parts[1] = into.subspan(std::max(in_done_, beside) - beside);
  const auto got = stream_.recv(parts);
  if (got < 0) return Io::ended;
  in_done_ += static_cast<std::size_t>(got);
  return in_done_ < whole ? Io::part : Io::whole;
}

}  // namespace sinew::tcp
