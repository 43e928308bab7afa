// Two ends of a new connection convince each other that they know the job's token, and say who they
// are, before either believes a length that the other sent. Messages have a fixed size;
// conversation.hpp has them.
#pragma once

#include <memory>
#include <string>

#include <sinew/transport.hpp>
#include "transport/trust/hello.hpp"
#include "transport/trust/token.hpp"

namespace sinew {

class Handshake {
 public:
  using Role = HandshakeRole;
  using Judge = HandshakeJudge;

  /// `descriptor` is connected and does not block; it stays the caller's. With a judge of its own
  /// an accepting end serves any purpose, stream and group, and answers with those it was asked
  /// for.
  Handshake(int descriptor, Role role, const Token& token, const Hello& mine, Judge judge = {});
  ~Handshake();
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  /// Reads and writes what it can; pending: wait for `wants_write() ? writable : readable`.
  Progress poll() noexcept;
  [[nodiscard]] bool wants_write() const noexcept;
  /// The same until done or failed, for those with nothing else to do. Fails at the deadline.
  Progress wait(Deadline deadline) noexcept;
  /// After done: who the other end is. Never more bytes than its messages are read from the socket.
  [[nodiscard]] const Hello& theirs() const noexcept;
  /// After done: a key that only the two ends of this connection have, and that is bound to what
  /// they said. Throws Error{system}.
  [[nodiscard]] Token secret() const;
  /// After failed: why, with the other end as the subject ("has another token", "speaks version 7,
  /// not 1", "is not a sinew peer").
  [[nodiscard]] const std::string& why() const noexcept;
  /// After failed: the other end closed or fell silent without saying no, so that a new connection
  /// may fare better.
  [[nodiscard]] bool hung_up() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinew
