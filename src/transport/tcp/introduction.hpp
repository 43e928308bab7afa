// A connected socket on its way to a stream: both ends prove themselves, then agree on keys if they
// are to speak TLS.
#pragma once

#include <memory>
#include <string>

#include "transport/tcp/stream.hpp"
#include "transport/trust/handshake.hpp"

namespace sinew::tcp {

class Introduction {
 public:
  /// `tls`: what sessions are made from, if `mine` says that there is one.
  Introduction(Socket socket, Handshake::Role role, const Token& token, const Hello& mine,
               const TlsContext* tls, Handshake::Judge judge = {});

  /// Pending: wait for `wants_write() ? writable : readable`.
  Progress poll() noexcept;
  [[nodiscard]] bool wants_write() const noexcept;
  [[nodiscard]] const Hello& theirs() const noexcept { return handshake_.theirs(); }
  /// After failed, with the other end as the subject.
  [[nodiscard]] std::string why() const;
  /// After failed: the other end only closed or fell silent.
  [[nodiscard]] bool hung_up() const noexcept { return !session_ && handshake_.hung_up(); }
  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }
  /// After done.
  Stream take() noexcept { return Stream(std::move(socket_), std::move(session_)); }

 private:
  Socket socket_;
  Handshake::Role role_;
  const TlsContext* tls_;
  Handshake handshake_;
  std::unique_ptr<Tls> session_;
  std::string fault_;  // of our own
};

}  // namespace sinew::tcp
