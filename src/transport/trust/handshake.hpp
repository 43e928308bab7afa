// Two ends of a new connection convince each other that they know the job's token, and say who they
// are, before either believes a length that the other sent. Messages have a fixed size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <sinew/transport.hpp>
#include "transport/trust/token.hpp"

namespace sinew {

/// Who an end is. Proven by the token together with both ends' nonces, so that it cannot be
/// replayed, nor brought from another job or epoch.
struct Hello {
  enum class Purpose : std::uint8_t { store, control, data };
  Purpose purpose{};
  std::uint8_t stream = 0;  // of several data connections between two ranks
  std::uint16_t reserved = 0;
  std::uint32_t epoch = 0;  // membership that the end belongs to
  std::int32_t rank = -1;   // -1: not a rank (a launcher)
  std::int32_t size = 0;
  std::uint64_t group =
      0;  // hash of the communicator's name: subsets have connections of their own
};

class Handshake {
 public:
  enum class Role : std::uint8_t { connects, accepts };
  /// `descriptor` is connected and does not block; it stays the caller's.
  Handshake(int descriptor, Role role, const Token& token, const Hello& mine);
  ~Handshake();
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  /// Reads and writes what it can; pending: wait for `wants_write() ? writable : readable`.
  Progress poll() noexcept;
  [[nodiscard]] bool wants_write() const noexcept;
  /// After done: who the other end is. Never more bytes than its messages are read from the socket.
  [[nodiscard]] const Hello& theirs() const noexcept;
  /// After failed: why, for a log ("wrong token", "speaks version 7, not 1", "not a sinew peer").
  [[nodiscard]] const std::string& why() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinew
