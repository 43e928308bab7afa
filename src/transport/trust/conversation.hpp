// What two ends say to each other in a handshake, without the socket: bytes in, bytes out.
//
//   1  connects -> accepts   magic, version, nonce
//   2  accepts -> connects   magic, version, nonce, proof
//   3  connects -> accepts   verdict, hello, proof
//   4  accepts -> connects   verdict, hello, reason, proof
//
// A proof covers its sender's role and every byte before it, both nonces included, so an old or
// reflected one fits nowhere. The connecting end says nothing but a random number until the other
// has shown that it knows the token. What cannot be prevented here is a relay that passes all bytes
// on unchanged: it learns the hellos and is between the ends it connects. TLS is for that, with
// secret() as its key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "transport/trust/hello.hpp"
#include "transport/trust/token.hpp"

namespace sinew {

inline constexpr std::uint32_t kHandshakeVersion = 1;
inline constexpr std::array<std::size_t, 4> kHandshakeBytes{48, 80, 64, 192};  // of each message

class Conversation {
 public:
  enum class Turn : std::uint8_t { read, write, done, failed };

  Conversation(HandshakeRole role, const Token& token, const Hello& mine, HandshakeJudge judge);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  [[nodiscard]] Turn turn() const noexcept { return turn_; }
  /// In turn `read`: where the next bytes go, never past the message; then how many came.
  [[nodiscard]] std::span<std::byte> room() noexcept;
  void took(std::size_t bytes);
  /// In turn `write`: what is left to send of the message; then how much was sent.
  [[nodiscard]] std::span<const std::byte> words() const noexcept;
  void sent(std::size_t bytes);
  /// The other end is gone, or takes too long.
  void lost(const std::string& how);

  [[nodiscard]] const Hello& theirs() const noexcept { return theirs_; }
  /// After done: what both ends of this conversation know and nobody else. Throws Error{system}.
  [[nodiscard]] Token secret() const;
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  /// Whether it failed only because the other end was lost.
  [[nodiscard]] bool hung_up() const noexcept { return hung_up_; }

 private:
  enum class Verdict : std::uint8_t { welcome = 1, refused, wrong_token };

  [[nodiscard]] bool connects() const noexcept { return role_ == HandshakeRole::connects; }
  void begin(std::size_t message);
  void write_message(std::size_t message);
  void check_opening();
  void check_answer();
  void check_claim();
  void check_welcome();
  [[nodiscard]] std::string judge() const;
  void seal(std::size_t message);
  [[nodiscard]] bool check_proof(std::size_t message) const;
  void fail(std::string why);
  /// Says so in the next message, then fails.
  void refuse(Verdict verdict, std::string why);

  HandshakeRole role_;
  Token token_;
  Hello mine_, theirs_;
  HandshakeJudge judge_;
  Turn turn_ = Turn::read;
  std::size_t message_ = 0;  // under way
  std::size_t at_ = 0;       // bytes of the conversation so far
  std::size_t end_ = 0;      // of the message under way
  std::string why_;
  bool hung_up_ = false;
  bool failing_ = false;                              // this message is our last
  std::array<std::byte, 48 + 80 + 64 + 192> said_{};  // by both, in order
};

}  // namespace sinew
