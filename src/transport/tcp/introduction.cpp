#include "transport/tcp/introduction.hpp"

#include <exception>

namespace sinew::tcp {

Introduction::Introduction(Socket socket, Handshake::Role role, const Token& token,
                           const Hello& mine, const TlsContext* tls, Handshake::Judge judge)
    : socket_(std::move(socket)),
      role_(role),
      tls_(tls),
      handshake_(socket_.get(), role, token, mine, std::move(judge)) {}

Progress Introduction::poll() noexcept {
  if (session_) return session_->poll();
  const auto progress = handshake_.poll();
  if (progress != Progress::done || tls_ == nullptr) return progress;
  try {
    session_ = std::make_unique<Tls>(*tls_, socket_.get(), role_, handshake_.secret());
  } catch (const std::exception& error) {
    fault_ = error.what();
    return Progress::failed;
  }
  return session_->poll();
}

bool Introduction::wants_write() const noexcept {
  return session_ ? session_->wants_write() : handshake_.wants_write();
}

std::string Introduction::why() const {
  if (!fault_.empty()) return fault_;
  return session_ ? session_->why() : handshake_.why();
}

}  // namespace sinew::tcp
