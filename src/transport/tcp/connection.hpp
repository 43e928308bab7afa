// A data connection: one frame going out and one coming in, each possibly half done.
#pragma once

#include <memory>

#include "transport/tcp/socket.hpp"
#include "transport/tcp/waiter.hpp"
#include "transport/wire/frame.hpp"

namespace sinew::tcp {

class Connection {
 public:
  enum class Io : std::uint8_t {
    whole,  // the frame is complete
    part,   // some of it moved, or nothing: the kernel has no more for us now
    ended   // the connection is closed, or broken
  };

  /// `bounce_bytes`: room for a frame that is not received where it is wanted in the end.
  Connection(Socket socket, std::size_t bounce_bytes);

  /// Begins a frame; then push() its payload until it is whole. A payload must stay as it is.
  void begin(const wire::Frame& frame) noexcept {
    out_header_ = wire::encode(frame);
    out_done_ = 0;
  }
  [[nodiscard]] bool is_sending() const noexcept { return out_done_ < kIdle; }
  Io push(std::span<const std::byte> payload) noexcept;

  /// Receives a frame whose payload goes `into`, as far as it has come.
  Io pull(std::span<std::byte> into) noexcept;
  /// Whether the header of the frame being received is here; read it, and call skip_header().
  [[nodiscard]] bool has_header() const noexcept {
    return !header_seen_ && in_done_ >= wire::kHeaderBytes;
  }
  [[nodiscard]] const wire::Header& header() const noexcept { return in_header_; }
  void skip_header() noexcept { header_seen_ = true; }
  [[nodiscard]] bool is_receiving() const noexcept { return in_done_ > 0; }
  /// The frame is received and used: the next.
  void finish() noexcept {
    in_done_ = 0;
    header_seen_ = false;
  }

  [[nodiscard]] std::byte* bounce() const noexcept { return bounce_.get(); }
  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

  Gate in, out;
  wire::Frame arriving;  // for whoever reads headers

 private:
  static constexpr std::size_t kIdle = ~std::size_t{0};
  Socket socket_;
  std::unique_ptr<std::byte[]> bounce_;
  std::size_t out_done_ = kIdle;  // bytes of header and payload
  std::size_t in_done_ = 0;
  bool header_seen_ = false;
  wire::Header out_header_{}, in_header_{};
};

}  // namespace sinew::tcp
