// Two ends that should and should not trust each other, over socket pairs and loopback TCP.
#include "transport/trust/handshake.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include <sinew/error.hpp>
#include "transport/trust/conversation.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
using Role = Handshake::Role;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kConnectorSays = kHandshakeBytes[0] + kHandshakeBytes[2];
constexpr std::size_t kAcceptorSays = kHandshakeBytes[1] + kHandshakeBytes[3];

Hello rank(int rank, int size = 4) {
  return {.purpose = Hello::Purpose::data, .epoch = 1, .rank = rank, .size = size, .group = 77};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Two connected sockets that do not block.
struct Pair {
  std::array<int, 2> ends{-1, -1};
  ~Pair() {
    close_end(0);
    close_end(1);
  }
  void close_end(std::size_t end) {
    if (ends[end] >= 0) ::close(std::exchange(ends[end], -1));
  }
};

void make_unix(Pair& pair) {
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.ends.data()), 0);
}

void make_tcp(Pair& pair) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener, generic, bytes), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, generic, &bytes), 0);
  pair.ends[0] = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(pair.ends[0], generic, bytes), 0);
  pair.ends[1] = ::accept(listener, nullptr, nullptr);
  ASSERT_GE(pair.ends[1], 0);
  for (const int end : pair.ends) ::fcntl(end, F_SETFL, O_NONBLOCK);
  ::close(listener);
}

/// What became of both ends: the story of each, "" when it is content.
struct Ending {
  std::string connecting, accepting;
};

Ending finish(Handshake& connecting, Handshake& accepting) {
  const auto until = Clock::now() + 10s;
  auto first = Progress::pending, second = Progress::pending;
  while (first == Progress::pending || second == Progress::pending) {
    if (first == Progress::pending) first = connecting.poll();
    if (second == Progress::pending) second = accepting.poll();
    if (Clock::now() > until) return {"stuck", "stuck"};
  }
  return {first == Progress::done ? "" : connecting.why(),
          second == Progress::done ? "" : accepting.why()};
}

/// A handshake over fresh sockets.
Ending meet(const Token& token_a, const Hello& a, const Token& token_b, const Hello& b,
            bool over_tcp = false) {
  Pair pair;
  over_tcp ? make_tcp(pair) : make_unix(pair);
  Handshake connecting(pair.ends[0], Role::connects, token_a, a);
  Handshake accepting(pair.ends[1], Role::accepts, token_b, b);
  const auto ending = finish(connecting, accepting);
  if (ending.connecting.empty() && ending.accepting.empty()) {
    EXPECT_EQ(connecting.theirs(), b);
    EXPECT_EQ(accepting.theirs(), a);
  }
  return ending;
}

void say(int socket, std::span<const std::byte> bytes) {
  ASSERT_EQ(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
}

Bytes hear(int socket) {
  Bytes bytes(4096);
  const auto got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return bytes;
}

/// Moves what one end has said to the other, at most `most` bytes at a time, and keeps a copy.
void relay(int from, int to, std::size_t most, Bytes& copy) {
  Bytes bytes(most);
  const auto got = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got <= 0) return;
  bytes.resize(static_cast<std::size_t>(got));
  say(to, bytes);
  copy.insert(copy.end(), bytes.begin(), bytes.end());
}

struct Transcript {
  Bytes connector, acceptor;
};

/// A good handshake with somebody listening in between, who passes on `most` bytes at a time.
Transcript overhear(const Token& token, std::size_t most, const Hello& a = rank(0),
                    const Hello& b = rank(1)) {
  Pair left, right;
  make_unix(left);
  make_unix(right);
  Handshake connecting(left.ends[0], Role::connects, token, a);
  Handshake accepting(right.ends[1], Role::accepts, token, b);
  Transcript heard;
  auto first = Progress::pending, second = Progress::pending;
  for (int turns = 0; turns < 5000; ++turns) {
    if (first == Progress::pending) first = connecting.poll();
    relay(left.ends[1], right.ends[0], most, heard.connector);
    if (second == Progress::pending) second = accepting.poll();
    relay(right.ends[0], left.ends[1], most, heard.acceptor);
  }
  EXPECT_EQ(first, Progress::done) << connecting.why();
  EXPECT_EQ(second, Progress::done) << accepting.why();
  return heard;
}

TEST(Handshake, equal_tokens_meet_and_learn_who_the_other_is) {
  const auto token = Token::make();
  for (const bool over_tcp : {false, true}) {
    const auto ending = meet(token, rank(0), token, rank(1), over_tcp);
    EXPECT_EQ(ending.connecting, "");
    EXPECT_EQ(ending.accepting, "");
  }
  // A launcher is no rank and may not know how many there will be.
  const Hello launcher{.purpose = Hello::Purpose::store};
  const Hello client{.purpose = Hello::Purpose::store, .rank = 3, .size = 4};
  EXPECT_EQ(meet(token, client, token, launcher).connecting, "");
}

TEST(Handshake, another_token_is_told_to_both_ends) {
  const auto token = Token::make();
  for (std::size_t byte = 0; byte < token.bytes.size(); ++byte) {
    auto other = token;
    other.bytes[byte] ^= std::byte{1};
    const auto ending = meet(token, rank(0), other, rank(1), byte == 0);
    EXPECT_EQ(ending.connecting, "has another token");
    EXPECT_EQ(ending.accepting, "says that our token is not its own");
  }
}

TEST(Handshake, what_does_not_fit_together_is_told_to_both_ends) {
  const auto token = Token::make();
  const auto mine = rank(1);
  struct Case {
    Hello theirs;
    std::string reason;
  };
  auto stream = rank(0), group = rank(0), epoch = rank(0), purpose = rank(0);
  stream.stream = 2;
  group.group = 78;
  epoch.epoch = 2;
  purpose.purpose = Hello::Purpose::control;
  for (const auto& [theirs, reason] :
       {Case{rank(0, 8), "counts 8 ranks, not 4"}, Case{rank(1), "rank 1, which is taken"},
        Case{rank(4), "rank 4, which does not exist"},
        Case{rank(-2), "rank -2, which does not exist"}, Case{epoch, "epoch 2, not to 1"},
        Case{stream, "another communicator"}, Case{group, "another communicator"},
        Case{purpose, "control, not for data"}}) {
    const auto ending = meet(token, theirs, token, mine);
    EXPECT_TRUE(has(ending.accepting, reason)) << ending.accepting;
    EXPECT_TRUE(has(ending.connecting, "refuses us, saying: this end ")) << ending.connecting;
    EXPECT_TRUE(has(ending.connecting, reason)) << ending.connecting;
  }
}

TEST(Handshake, a_judge_serves_many_purposes_and_its_refusal_reaches_the_other_end) {
  const auto token = Token::make();
  const auto attempt = [&](const Hello& asked, const std::string& refusal) {
    Pair pair;
    make_tcp(pair);
    Handshake connecting(pair.ends[0], Role::connects, token, asked);
    Handshake accepting(pair.ends[1], Role::accepts, token, {.epoch = 1, .rank = 1, .size = 4},
                        [&](const Hello& theirs) {
                          EXPECT_EQ(theirs, asked);
                          return refusal;
                        });
    return finish(connecting, accepting);
  };
  auto asked = rank(0);
  for (const std::uint8_t stream : {0, 1, 7}) {
    asked.stream = stream;
    asked.group = stream * 1000U;
    EXPECT_EQ(attempt(asked, "").connecting, "");
  }
  const auto ending = attempt(asked, "came too late\n\x1b[31m" + std::string(300, 'x'));
  EXPECT_TRUE(has(ending.connecting, "this end came too late??[31mxxx")) << ending.connecting;
  EXPECT_LT(ending.connecting.size(), 200U);
}

TEST(Handshake, byte_by_byte_is_as_good_as_at_once) {
  const auto token = Token::make();
  for (const std::size_t most : {1, 7, 47, 48, 49, 4096}) {
    const auto heard = overhear(token, most);
    EXPECT_EQ(heard.connector.size(), kConnectorSays);
    EXPECT_EQ(heard.acceptor.size(), kAcceptorSays);
  }
}

TEST(Handshake, bytes_after_it_stay_in_the_socket) {
  const auto token = Token::make();
  Pair pair;
  make_unix(pair);
  Handshake connecting(pair.ends[0], Role::connects, token, rank(0));
  Handshake accepting(pair.ends[1], Role::accepts, token, rank(1));
  while (accepting.poll() == Progress::pending) (void)connecting.poll();
  const Bytes frame(100, std::byte{9});
  say(pair.ends[1], frame);  // right behind the last message, which the other has not read yet
  EXPECT_EQ(connecting.poll(), Progress::done);
  say(pair.ends[0], frame);
  EXPECT_EQ(accepting.poll(), Progress::done);
  EXPECT_EQ(hear(pair.ends[0]), frame);
  EXPECT_EQ(hear(pair.ends[1]), frame);
}

TEST(Handshake, a_replayed_connector_is_refused) {
  const auto token = Token::make();
  const auto heard = overhear(token, 4096);
  Pair pair;
  make_unix(pair);
  Handshake accepting(pair.ends[1], Role::accepts, token, rank(1));
  say(pair.ends[0], heard.connector);
  EXPECT_EQ(accepting.wait(Clock::now() + 5s), Progress::failed);
  EXPECT_EQ(accepting.why(), "has another token");
  EXPECT_EQ(accepting.theirs().rank, -1);  // nothing was believed
}

TEST(Handshake, a_replayed_acceptor_is_refused_and_learns_nothing) {
  const auto token = Token::make();
  const auto heard = overhear(token, 4096);
  Pair pair;
  make_unix(pair);
  Handshake connecting(pair.ends[0], Role::connects, token, rank(2));
  say(pair.ends[1], heard.acceptor);
  EXPECT_EQ(connecting.wait(Clock::now() + 5s), Progress::failed);
  EXPECT_EQ(connecting.why(), "has another token");
  // A random number, and that the proof was wrong: no hello, no proof of our own.
  const auto said = hear(pair.ends[1]);
  ASSERT_EQ(said.size(), kConnectorSays);
  EXPECT_TRUE(std::all_of(said.begin() + kHandshakeBytes[0] + 1, said.end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(Handshake, reflected_messages_are_refused) {
  const auto token = Token::make();
  for (const Role role : {Role::connects, Role::accepts}) {
    Pair pair;
    make_unix(pair);
    Handshake handshake(pair.ends[0], role, token, rank(0));
    // Two accepting ends would wait for each other, so the mirror begins with an opening.
    const auto heard = overhear(token, 4096);
    if (role == Role::accepts)
      say(pair.ends[1], std::span(heard.connector).first(kHandshakeBytes[0]));
    auto progress = Progress::pending;
    for (int turns = 0; turns < 10 && progress == Progress::pending; ++turns) {
      progress = handshake.poll();
      if (const auto words = hear(pair.ends[1]); !words.empty()) say(pair.ends[1], words);
    }
    pair.close_end(1);
    EXPECT_EQ(handshake.wait(Clock::now() + 5s), Progress::failed);
  }
}

// Somebody opens a connection to the very end that is connecting, hoping to use its answers.
TEST(Handshake, two_ends_that_both_connect_do_not_agree) {
  const auto token = Token::make();
  Pair pair;
  make_unix(pair);
  Handshake a(pair.ends[0], Role::connects, token, rank(0));
  Handshake b(pair.ends[1], Role::connects, token, rank(1));
  // Each takes the other's opening for the beginning of an answer, and waits for its rest.
  EXPECT_EQ(a.poll(), Progress::pending);
  EXPECT_EQ(b.poll(), Progress::pending);
  EXPECT_EQ(a.wait(Clock::now() + 10ms), Progress::failed);
  EXPECT_TRUE(has(a.why(), "fell silent after 48 of 80 bytes")) << a.why();
}

TEST(Handshake, a_truncated_transcript_fails_at_every_length) {
  const auto token = Token::make();
  const auto heard = overhear(token, 4096);
  for (std::size_t bytes = 0; bytes < kConnectorSays; ++bytes) {
    Pair pair;
    make_unix(pair);
    Handshake accepting(pair.ends[1], Role::accepts, token, rank(1));
    say(pair.ends[0], std::span(heard.connector).first(bytes));
    ::shutdown(pair.ends[0], SHUT_WR);
    EXPECT_EQ(accepting.wait(Clock::now() + 5s), Progress::failed);
    EXPECT_TRUE(has(accepting.why(), "closed the connection after ")) << accepting.why();
  }
}

// A man in the middle may change any bit of any message: one end at least must notice.
TEST(Handshake, no_flipped_bit_goes_unnoticed) {
  const auto token = Token::make();
  for (std::size_t flipped = 0; flipped < kConnectorSays + kAcceptorSays; ++flipped) {
    Conversation a(Role::connects, token, rank(0), {}), b(Role::accepts, token, rank(1), {});
    std::size_t moved = 0;
    const auto pass = [&](Conversation& from, Conversation& to) {
      while (from.turn() == Conversation::Turn::write && to.turn() == Conversation::Turn::read) {
        std::byte byte = from.words()[0];
        from.sent(1);
        if (moved++ == flipped) byte ^= std::byte{4};
        to.room()[0] = byte;
        to.took(1);
      }
    };
    for (int turns = 0; turns < 4; ++turns) {
      pass(a, b);
      pass(b, a);
    }
    EXPECT_FALSE(a.turn() == Conversation::Turn::done && b.turn() == Conversation::Turn::done)
        << "byte " << flipped;
    EXPECT_NE(a.turn(), Conversation::Turn::done) << "byte " << flipped;
  }
}

TEST(Handshake, random_bytes_and_other_protocols_are_strangers) {
  const auto token = Token::make();
  std::mt19937 random(20240611);
  const auto offer = [&](Role role, std::span<const std::byte> words) {
    Pair pair;
    make_unix(pair);
    Handshake handshake(pair.ends[0], role, token, rank(0));
    say(pair.ends[1], words);
    EXPECT_EQ(handshake.wait(Clock::now() + 5s), Progress::failed);
    EXPECT_EQ(handshake.why(), "is not a sinew peer");
    EXPECT_TRUE(role == Role::connects || hear(pair.ends[1]).empty());  // no answer for strangers
  };
  for (const Role role : {Role::connects, Role::accepts}) {
    for (int trial = 0; trial < 200; ++trial) {
      Bytes words(1 + random() % 300);
      for (auto& byte : words) byte = static_cast<std::byte>(random());
      if (words[0] == std::byte{'s'}) words[0] = std::byte{0};
      offer(role, words);
    }
    for (const std::string text :
         {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02", "SSH-2.0-x\r\n", "\n"})
      offer(role, std::as_bytes(std::span(text)));
  }
}

TEST(Handshake, another_version_is_named_on_both_ends) {
  const auto token = Token::make();
  auto opening = overhear(token, 4096).connector;
  opening.resize(kHandshakeBytes[0]);
  opening[8] = std::byte{7};
  for (const bool over_tcp : {false, true}) {
    Pair pair;
    over_tcp ? make_tcp(pair) : make_unix(pair);
    Handshake accepting(pair.ends[1], Role::accepts, token, rank(1));
    say(pair.ends[0], opening);
    EXPECT_EQ(accepting.wait(Clock::now() + 5s), Progress::failed);
    EXPECT_TRUE(has(accepting.why(), "speaks version 7 of the handshake, not 1"))
        << accepting.why();
    pair.close_end(1);
    const auto answer = hear(pair.ends[0]);
    ASSERT_EQ(answer.size(), 16U);  // enough for the other end to say the same
    EXPECT_EQ(answer[8], std::byte{1});
  }
  Pair pair;
  make_unix(pair);
  Handshake connecting(pair.ends[0], Role::connects, token, rank(0));
  EXPECT_EQ(connecting.poll(), Progress::pending);
  say(pair.ends[1], std::span(opening).first(16));
  pair.close_end(1);
  EXPECT_EQ(connecting.wait(Clock::now() + 5s), Progress::failed);
  EXPECT_TRUE(has(connecting.why(), "speaks version 7 of the handshake, not 1"))
      << connecting.why();
}

TEST(Handshake, a_silent_peer_costs_no_more_than_the_deadline) {
  for (const Role role : {Role::connects, Role::accepts}) {
    Pair pair;
    make_unix(pair);
    Handshake handshake(pair.ends[0], role, Token::make(), rank(0));
    const auto begin = Clock::now();
    EXPECT_EQ(handshake.wait(begin + 30ms), Progress::failed);
    EXPECT_TRUE(has(handshake.why(), "fell silent after 0 of ")) << handshake.why();
    EXPECT_LT(Clock::now() - begin, 5s);
  }
}

TEST(Token, is_written_and_read_and_never_shown) {
  const auto token = Token::make();
  EXPECT_EQ(token.hex().size(), 64U);
  EXPECT_EQ(Token::parse(token.hex()), token);
  EXPECT_NE(Token::make(), token);
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      (void)Token::parse(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      return error.what();
    }
    return "";
  };
  const std::string secret = "deadbeef";
  EXPECT_TRUE(has(refusal(secret), "this one 8 characters"));
  EXPECT_FALSE(has(refusal(secret), secret));
  auto misspelt = token.hex();
  misspelt[41] = 'g';
  EXPECT_TRUE(has(refusal(misspelt), "character 42 is none"));
  EXPECT_FALSE(has(refusal(misspelt), misspelt.substr(0, 8)));
  EXPECT_NE(refusal(token.hex() + "\n"), "");
}

}  // namespace
}  // namespace sinew
