// A data connection: a few frames going out and one coming in, each possibly half done.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "transport/tcp/stream.hpp"
#include "transport/tcp/waiter.hpp"
#include "transport/wire/frame.hpp"

namespace sinew::tcp {

class Connection {
 public:
  enum class Io : std::uint8_t {
    whole,  // the frame is complete; going out, all that are queued
    part,   // some of it moved, or nothing: the kernel has no more for us now
    ended   // the connection is closed, or broken
  };

  /// `bounce_bytes`: room for a frame that is not received where it is wanted in the end.
  Connection(Stream stream, std::size_t bounce_bytes);

  /// Frames that go out together, which costs less than one call after the other.
  static constexpr std::size_t kMostQueued = Stream::kMostParts / 2;
  /// The payload stays where it is, and so does this connection, until push() is through.
  void queue(const wire::Frame& frame, std::span<const std::byte> payload) noexcept;
  [[nodiscard]] std::size_t queued_frames() const noexcept { return queued_frames_; }
  /// `gone`: how many of the queued frames this call has sent to their end.
  Io push(std::size_t& gone) noexcept;

  /// Receives a frame whose payload may go `into`, as far as it has come.
  Io pull(std::span<std::byte> into) noexcept;
  /// Where the payload of a whole frame is: `into`, or a short one beside its header.
  [[nodiscard]] std::span<const std::byte> payload(std::span<std::byte> into) const noexcept {
    return is_short(into.size()) ? std::span(in_).subspan(wire::kHeaderBytes, into.size()) : into;
  }
  /// Whether the header of the frame being received is here; read it, and call skip_header().
  [[nodiscard]] bool has_header() const noexcept {
    return !header_seen_ && in_done_ >= wire::kHeaderBytes;
  }
  [[nodiscard]] std::span<const std::byte, wire::kHeaderBytes> header() const noexcept {
    return std::span(in_).first<wire::kHeaderBytes>();
  }
  void skip_header() noexcept { header_seen_ = true; }
  [[nodiscard]] bool is_receiving() const noexcept { return in_done_ > 0; }
  /// The frame is received and used: the next.
  void finish() noexcept {
    in_done_ = 0;
    header_seen_ = false;
  }

  [[nodiscard]] std::byte* bounce() const noexcept { return bounce_.get(); }
  [[nodiscard]] const Stream& stream() const noexcept { return stream_; }

  Gate in, out;
  wire::Frame arriving;  // for whoever reads headers

 private:
  // Up to here, copying a payload beside its header is cheaper than a call with two parts.
  static constexpr std::size_t kShort = 4096;
  static constexpr std::size_t kLineBytes = 64;
  static bool is_short(std::size_t bytes) noexcept { return bytes <= kShort; }
  void queue_part(std::span<const std::byte> part) noexcept { out_parts_[queued_parts_++] = part; }
  // A frame is two parts, but for the first if it is short: that is one.
  [[nodiscard]] std::size_t sent_frames() const noexcept {
    return first_is_short_ && sent_parts_ > 0 ? (sent_parts_ + 1) / 2 : sent_parts_ / 2;
  }

  Stream stream_;
  std::unique_ptr<std::byte[]> bounce_;
  std::array<std::span<const std::byte>, Stream::kMostParts> out_parts_;
  std::size_t queued_parts_ = 0, sent_parts_ = 0, queued_frames_ = 0;
  bool first_is_short_ = false;
  std::size_t in_done_ = 0;  // bytes of header and payload
  bool header_seen_ = false;
  std::array<wire::Header, kMostQueued> out_headers_;
  alignas(kLineBytes) std::array<std::byte, wire::kHeaderBytes + kShort> out_, in_;
};

}  // namespace sinew::tcp
