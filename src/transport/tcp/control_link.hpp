// The control connection to one peer: frames out and in, never blocking, in buffers of fixed size.
#pragma once

#include <array>
#include <functional>
#include <span>

#include "transport/tcp/socket.hpp"
#include "transport/wire/control.hpp"
#include "transport/wire/frame.hpp"

namespace sinew::tcp {

class ControlLink {
 public:
  explicit ControlLink(Socket socket) noexcept : socket_(std::move(socket)) {}

  /// Sends, or keeps what does not go out now. False: no room, and nothing was sent.
  bool send(const wire::Frame& frame, std::span<const std::byte> payload) noexcept;
  void flush() noexcept;
  /// Whether everything so far has been handed to the kernel.
  [[nodiscard]] bool is_flushed() const noexcept { return waiting_ == 0; }

  using Handler = std::function<void(const wire::Frame&, std::span<const std::byte> payload)>;
  /// Hands over every frame that has arrived. "": there may be more later; otherwise why there
  /// will not be.
  std::string read(const Handler& handler);

  /// Whether the other end closed it, or its process died. Otherwise it only went silent.
  [[nodiscard]] bool was_closed() const noexcept { return was_closed_; }

  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

 private:
  std::string take_frames(const Handler& handler);

  Socket socket_;
  std::array<std::byte, 4 * (wire::kHeaderBytes + wire::kMostControl)> out_{};
  std::size_t waiting_ = 0;  // bytes of out_
  std::array<std::byte, wire::kHeaderBytes + wire::kMostControl> in_{};
  std::size_t have_ = 0;  // bytes of in_
  bool was_closed_ = false;
};

}  // namespace sinew::tcp
