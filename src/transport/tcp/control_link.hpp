// The control connection to one peer: frames out and in, never blocking, in buffers of fixed size.
#pragma once

#include <array>
#include <functional>
#include <span>

#include "transport/tcp/stream.hpp"
#include "transport/wire/control.hpp"
#include "transport/wire/frame.hpp"

namespace sinew::tcp {

class ControlLink {
 public:
  explicit ControlLink(Stream stream) noexcept : stream_(std::move(stream)) {}

  /// Sends, or keeps what does not go out now. False: no room, and nothing was sent.
  bool send(const wire::Frame& frame, std::span<const std::byte> payload) noexcept;
  void flush() noexcept;
  /// Whether everything so far has been handed to the kernel.
  [[nodiscard]] bool is_flushed() const noexcept { return waiting_ == 0; }

  using Handler = std::function<void(const wire::Frame&, std::span<const std::byte> payload)>;
  /// Hands over every frame that has arrived. False: there will be no more, and why() tells why.
  bool read(const Handler& handler);
  [[nodiscard]] std::string why() const;

  /// Whether the other end closed it, or its process died. Otherwise it only went silent.
  [[nodiscard]] bool was_closed() const noexcept { return fault_.empty() && stream_.was_closed(); }

  [[nodiscard]] const Socket& socket() const noexcept { return stream_.socket(); }

 private:
  bool take_frames(const Handler& handler);

  Stream stream_;
  std::array<std::byte, 4 * (wire::kHeaderBytes + wire::kMostControl)> out_{};
  std::size_t waiting_ = 0;  // bytes of out_
  std::array<std::byte, wire::kHeaderBytes + wire::kMostControl> in_{};
  std::size_t have_ = 0;  // bytes of in_
  std::string fault_;     // in what it carried
};

}  // namespace sinew::tcp
