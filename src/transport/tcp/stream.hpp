// Bytes to and from one peer, in the clear or by TLS, never blocking.
#pragma once

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "transport/tcp/socket.hpp"
#include "transport/trust/tls.hpp"

namespace sinew::tcp {

class Stream {
 public:
  static constexpr std::ptrdiff_t kOver = Tls::kOver;

  Stream() = default;
  explicit Stream(Socket socket, std::unique_ptr<Tls> tls = {}) noexcept
      : socket_(std::move(socket)), tls_(std::move(tls)) {}

  /// How many parts one call takes.
  static constexpr std::size_t kMostParts = 8;

  /// One after the other, any of which may be empty. Bytes that went; 0: not now; kOver: the
  /// connection is closed or broken.
  std::ptrdiff_t send(std::span<const std::span<const std::byte>> parts) noexcept;
  std::ptrdiff_t recv(std::span<const std::span<std::byte>> parts) noexcept;

  /// After kOver: why, with the peer as the subject.
  [[nodiscard]] std::string why() const;
  /// After kOver: whether something came that the peer has not sent so.
  [[nodiscard]] bool is_damaged() const noexcept { return tls_ && tls_->is_damaged(); }
  /// After kOver: whether the peer closed it, or died. Otherwise it only went silent.
  [[nodiscard]] bool was_closed() const noexcept;
  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

 private:
  Socket socket_;
  std::unique_ptr<Tls> tls_;
  int error_ = 0;
};

}  // namespace sinew::tcp
