// TLS 1.3 over a connected socket, with a key that both ends have already: no certificates, and no
// end gets through without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <sinew/transport.hpp>
#include "transport/trust/hello.hpp"
#include "transport/trust/token.hpp"

namespace sinew {

/// What the sessions of a group share. Throws Error{system} where OpenSSL has no TLS 1.3.
class TlsContext {
 public:
  TlsContext();

 private:
  friend class Tls;
  struct State;
  std::shared_ptr<const State> state_;  // kept by the sessions too
};

class Tls {
 public:
  /// Records under one key. AES-GCM stays safe for 2^24.5 of them.
  static constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 23;
  static constexpr std::ptrdiff_t kOver = -1;

  /// `descriptor` is connected and does not block; it stays the caller's.
  Tls(const TlsContext& context, int descriptor, HandshakeRole role, const Token& key,
      std::uint64_t records_per_key = kRecordsPerKey);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// Agrees on fresh keys; pending: wait for `wants_write() ? writable : readable`. Never reads
  /// more from the socket than belongs to that.
  Progress poll() noexcept;
  [[nodiscard]] bool wants_write() const noexcept;

  /// Bytes that went; 0: not now, try again with the same bytes; kOver: see why().
  std::ptrdiff_t write(std::span<const std::byte> data) noexcept;
  /// As many bytes as fit and have come; 0: not now, when the socket is readable; kOver.
  std::ptrdiff_t read(std::span<std::byte> room) noexcept;

  /// After failed or kOver, with the other end as the subject: "closed the connection".
  [[nodiscard]] std::string why() const;
  /// After kOver: whether something came that the other end has not sent so.
  [[nodiscard]] bool is_damaged() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinew
