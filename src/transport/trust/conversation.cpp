#include "transport/trust/conversation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "transport/trust/proof.hpp"

namespace sinew {
namespace {

// Where messages begin, and what lies in them. Numbers are little-endian.
constexpr std::size_t kBegin[] = {0, 48, 128, 192, 384};
constexpr std::size_t kProofBytes = std::tuple_size_v<Proof>;
constexpr std::string_view kMagic{"sinew-hs", 8};
constexpr std::size_t kVersionAt = 8, kPreambleBytes = 16, kNonceAt = 16, kNonceBytes = 32;
constexpr std::size_t kHelloAt = 8, kReasonAt = 32, kReasonBytes = 128;
static_assert(kBegin[4] - kBegin[3] == kReasonAt + kReasonBytes + kProofBytes);

constexpr auto kOtherToken = "has another token";
constexpr auto kOurToken = "says that our token is not its own";

template <class T>
void put(std::byte* at, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    at[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
}

template <class T>
T take(const std::byte* at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return static_cast<T>(value);
}

void put_hello(std::byte* at, const Hello& hello) {
  put(at, static_cast<std::uint8_t>(hello.purpose));
  put(at + 1, hello.stream);
  put(at + 2, static_cast<std::uint16_t>(hello.tls));
  put(at + 4, hello.epoch);
  put(at + 8, hello.rank);
  put(at + 12, hello.size);
  put(at + 16, hello.group);
}

Hello take_hello(const std::byte* at) {
  return {.purpose = static_cast<Hello::Purpose>(take<std::uint8_t>(at)),
          .stream = take<std::uint8_t>(at + 1),
          .tls = take<std::uint16_t>(at + 2) != 0,
          .epoch = take<std::uint32_t>(at + 4),
          .rank = take<std::int32_t>(at + 8),
          .size = take<std::int32_t>(at + 12),
          .group = take<std::uint64_t>(at + 16)};
}

// Even a proven peer's words may be printed only where a terminal takes no orders from them.
std::string printable(const std::byte* at, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < most && at[i] != std::byte{0}; ++i) {
    const auto letter = std::to_integer<char>(at[i]);
    text += letter >= ' ' && letter <= '~' ? letter : '?';
  }
  return text;
}

// What a proof covers: the role of who makes it, then all that was said before it.
Proof proof_of(const Token& token, std::span<const std::byte> said, bool by_connecting_end) {
  constexpr std::string_view kConnects = "sinew handshake: connects",
                             kAccepts = "sinew handshake: accepts ";
  static_assert(kConnects.size() == kAccepts.size());
  std::array<std::byte, kConnects.size() + kBegin[4]> text{};
  std::memcpy(text.data(), (by_connecting_end ? kConnects : kAccepts).data(), kConnects.size());
  std::memcpy(text.data() + kConnects.size(), said.data(), said.size());
  return prove(token, std::span(text).first(kConnects.size() + said.size()));
}

}  // namespace

Conversation::Conversation(HandshakeRole role, const Token& token, const Hello& mine,
                           HandshakeJudge judge)
    : role_(role), token_(token), mine_(mine), judge_(std::move(judge)) {
  static_assert(kBegin[1] == kHandshakeBytes[0] && kBegin[4] == std::tuple_size_v<decltype(said_)>);
  begin(0);
}

Conversation::~Conversation() { forget(token_.bytes); }

std::span<std::byte> Conversation::room() noexcept {
  return std::span(said_).subspan(at_, end_ - at_);
}

std::span<const std::byte> Conversation::words() const noexcept {
  return std::span(said_).subspan(at_, end_ - at_);
}

void Conversation::begin(std::size_t message) {
  message_ = message;
  at_ = kBegin[message];
  end_ = kBegin[message + 1];
  const bool ours = connects() == (message % 2 == 0);
  turn_ = ours ? Turn::write : Turn::read;
  if (ours) write_message(message);
}

void Conversation::sent(std::size_t bytes) {
  at_ += bytes;
  if (at_ < end_) return;
  if (failing_)
    turn_ = Turn::failed;
  else if (message_ == 3)
    turn_ = Turn::done;
  else
    begin(message_ + 1);
}

void Conversation::took(std::size_t bytes) {
  at_ += bytes;
  if (message_ < 2) check_opening();
  if (turn_ != Turn::read || at_ < end_) return;
  switch (message_) {
    case 1:
      return check_answer();
    case 2:
      return check_claim();
    case 3:
      return check_welcome();
    default:
      return begin(1);
  }
}

void Conversation::lost(const std::string& how) {
  turn_ = Turn::failed;
  if (failing_) return;  // the first reason is the better one
  hung_up_ = true;
  fail(fmt::format("{} after {} of {} bytes of message {}", how, at_ - kBegin[message_],
                   kBegin[message_ + 1] - kBegin[message_], message_ + 1));
}

void Conversation::write_message(std::size_t message) {
  std::byte* at = said_.data() + kBegin[message];
  if (message < 2) {
    std::memcpy(at, kMagic.data(), kMagic.size());
    put(at + kVersionAt, kHandshakeVersion);
    fill_random(std::span(at + kNonceAt, kNonceBytes));
  } else {
    put(at, static_cast<std::uint8_t>(Verdict::welcome));
    put_hello(at + kHelloAt, mine_);
  }
  if (message > 0) seal(message);
}

void Conversation::seal(std::size_t message) {
  const auto at = kBegin[message + 1] - kProofBytes;
  const auto proof = proof_of(token_, std::span(said_).first(at), connects());
  std::memcpy(said_.data() + at, proof.data(), proof.size());
}

bool Conversation::check_proof(std::size_t message) const {
  const auto at = kBegin[message + 1] - kProofBytes;
  const auto proof = proof_of(token_, std::span(said_).first(at), !connects());
  return equal(proof, std::span<const std::byte, kProofBytes>(said_.data() + at, kProofBytes));
}

// As soon as bytes are there: a stranger is not waited for.
void Conversation::check_opening() {
  const std::byte* opening = said_.data() + kBegin[message_];
  const auto bytes = at_ - kBegin[message_];
  if (std::memcmp(opening, kMagic.data(), std::min(bytes, kMagic.size())) != 0)
    return fail("is not a sinew peer");
  if (bytes < kPreambleBytes) return;
  const auto version = take<std::uint32_t>(opening + kVersionAt);
  if (version == kHandshakeVersion) return;
  auto why = fmt::format(
      "speaks version {} of the handshake, not {}: both ends must run the same "
      "release of sinew",
      version, kHandshakeVersion);
  if (connects()) return fail(std::move(why));
  begin(1);
  end_ = at_ + kPreambleBytes;  // what an end of any version understands
  failing_ = true;
  why_ = std::move(why);
}

void Conversation::check_answer() {
  if (check_proof(1))
    begin(2);
  else
    refuse(Verdict::wrong_token, kOtherToken);
}

void Conversation::check_claim() {
  const std::byte* claim = said_.data() + kBegin[2];
  if (Verdict{take<std::uint8_t>(claim)} == Verdict::wrong_token) return fail(kOurToken);
  if (!check_proof(2)) return refuse(Verdict::wrong_token, kOtherToken);
  theirs_ = take_hello(claim + kHelloAt);
  if (judge_) {
    mine_.purpose = theirs_.purpose;
    mine_.stream = theirs_.stream;
    mine_.group = theirs_.group;
  }
  if (auto why = judge(); !why.empty())
    refuse(Verdict::refused, std::move(why));
  else
    begin(3);
}

void Conversation::check_welcome() {
  const std::byte* welcome = said_.data() + kBegin[3];
  const Verdict verdict{take<std::uint8_t>(welcome)};
  if (verdict == Verdict::wrong_token) return fail(kOurToken);
  if (!check_proof(3)) return fail(kOtherToken);
  if (verdict != Verdict::welcome)
    return fail(fmt::format("refuses us, saying: this end {}",
                            printable(welcome + kReasonAt, kReasonBytes)));
  theirs_ = take_hello(welcome + kHelloAt);
  if (auto why = judge(); !why.empty())
    fail(std::move(why));
  else
    turn_ = Turn::done;
}

Token Conversation::secret() const {
  constexpr std::string_view kPurpose = "sinew handshake: secret";
  std::array<std::byte, kPurpose.size() + kBegin[4]> text{};
  std::memcpy(text.data(), kPurpose.data(), kPurpose.size());
  std::memcpy(text.data() + kPurpose.size(), said_.data(), said_.size());
  return {prove(token_, text)};
}

std::string Conversation::judge() const {
  return judge_ ? judge_(theirs_) : misfit(mine_, theirs_);
}

void Conversation::refuse(Verdict verdict, std::string why) {
  begin(message_ + 1);
  failing_ = true;
  why_ = std::move(why);
  std::byte* at = said_.data() + kBegin[message_];
  std::memset(at, 0, end_ - at_);  // the hello is not for an end that we do not trust
  put(at, static_cast<std::uint8_t>(verdict));
  if (verdict != Verdict::refused) return;
  std::memcpy(at + kReasonAt, why_.data(), std::min(why_.size(), kReasonBytes));
  seal(message_);
}

void Conversation::fail(std::string why) {
  turn_ = Turn::failed;
  why_ = std::move(why);
}

}  // namespace sinew
