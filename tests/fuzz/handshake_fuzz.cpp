// A handshake with somebody who knows no token, and one with somebody in between.
#include <algorithm>
#include <cstring>

#include "require.hpp"
#include "transport/trust/conversation.hpp"

using namespace sinew;
using Turn = Conversation::Turn;

namespace {

constexpr Hello kA{.purpose = Hello::Purpose::data, .epoch = 1, .rank = 0, .size = 4};
constexpr Hello kB{.purpose = Hello::Purpose::data, .epoch = 1, .rank = 1, .size = 4};

Token token() {
  Token token;
  token.bytes.fill(std::byte{42});
  return token;
}

// All bytes come from a stranger: it never gets in.
void face_stranger(HandshakeRole role, const std::uint8_t* data, std::size_t bytes) {
  Conversation mine(role, token(), kA, {});
  while (true) {
    if (mine.turn() == Turn::write) {
      mine.sent(mine.words().size());
    } else if (mine.turn() == Turn::read && bytes > 0) {
      const auto some = std::min(bytes, mine.room().size());
      std::memcpy(mine.room().data(), data, some);
      mine.took(some);
      data += some;
      bytes -= some;
    } else {
      break;
    }
  }
  require(mine.turn() != Turn::done, "a stranger does not get in");
  require(mine.theirs() == Hello{}, "a stranger is not believed");
}

// The input is what is done to each byte between two who know the token: if anything is changed,
// the connecting end, which hears the last word, is not content.
void face_meddler(const std::uint8_t* data, std::size_t bytes) {
  Conversation a(HandshakeRole::connects, token(), kA, {});
  Conversation b(HandshakeRole::accepts, token(), kB, {});
  std::size_t moved = 0;
  bool changed = false;
  const auto pass = [&](Conversation& from, Conversation& to) {
    bool any = false;
    while (from.turn() == Turn::write && to.turn() == Turn::read) {
      const auto edit = std::byte{moved < bytes ? data[moved] : std::uint8_t{0}};
      ++moved;
      changed |= edit != std::byte{0};
      to.room()[0] = from.words()[0] ^ edit;
      from.sent(1);
      to.took(1);
      any = true;
    }
    return any;
  };
  while (pass(a, b) || pass(b, a)) {
  }
  require((a.turn() == Turn::done) == !changed, "the connecting end notices every change");
  require(b.turn() != Turn::done || b.theirs() == kA, "who gets in is who it says");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  switch (data[0] % 3) {
    case 0:
      face_stranger(HandshakeRole::connects, data + 1, bytes - 1);
      break;
    case 1:
      face_stranger(HandshakeRole::accepts, data + 1, bytes - 1);
      break;
    default:
      face_meddler(data + 1, bytes - 1);
  }
  return 0;
}
