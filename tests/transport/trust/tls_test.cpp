// A TLS session between the ends of a socket pair: what it carries, and whom it refuses.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "transport/trust/tls.hpp"

namespace sinew {
namespace {

constexpr auto kBlocked = 1'000'000;  // attempts after which nothing more will come

/// Both ends in one thread.
struct Pair {
  int ends[2] = {-1, -1};
  TlsContext context;
  std::unique_ptr<Tls> connects, accepts;

  explicit Pair(const Token& theirs = {}, std::uint64_t records_per_key = Tls::kRecordsPerKey) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    connects =
        std::make_unique<Tls>(context, ends[0], HandshakeRole::connects, Token{}, records_per_key);
    accepts =
        std::make_unique<Tls>(context, ends[1], HandshakeRole::accepts, theirs, records_per_key);
  }
  ~Pair() {
    for (const int end : ends) ::close(end);
  }
  /// What becomes of each end.
  std::pair<Progress, Progress> meet() const {
    auto first = Progress::pending, second = Progress::pending;
    for (int i = 0; i < 20; ++i) {
      if (first == Progress::pending) first = connects->poll();
      if (second == Progress::pending) second = accepts->poll();
    }
    return {first, second};
  }
};

const std::pair kBothDone{Progress::done, Progress::done};

std::vector<std::byte> numbers(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * i >> 3);
  return data;
}

// All of it, however little fits at a time.
std::vector<std::byte> carry(Tls& from, Tls& to, std::span<const std::byte> data) {
  std::vector<std::byte> got(data.size());
  std::size_t sent = 0, received = 0;
  for (int i = 0; i < kBlocked && received < data.size(); ++i) {
    if (sent < data.size())
      if (const auto more = from.write(data.subspan(sent)); more > 0)
        sent += static_cast<std::size_t>(more);
    if (const auto more = to.read(std::span(got).subspan(received)); more > 0)
      received += static_cast<std::size_t>(more);
  }
  got.resize(received);
  return got;
}

TEST(Tls, carries_bytes_of_any_number_in_both_directions) {
  const Pair pair;
  ASSERT_EQ(pair.meet(), kBothDone);
  for (const std::size_t bytes : {1, 64, 16384, 16385, 3'000'000}) {
    const auto data = numbers(bytes);
    EXPECT_EQ(carry(*pair.connects, *pair.accepts, data), data);
    EXPECT_EQ(carry(*pair.accepts, *pair.connects, data), data);
  }
}

TEST(Tls, changes_its_keys_on_the_way) {
  const Pair pair({}, 3);
  ASSERT_EQ(pair.meet(), kBothDone);
  const auto data = numbers(1'000'000);
  EXPECT_EQ(carry(*pair.connects, *pair.accepts, data), data);
  EXPECT_EQ(carry(*pair.accepts, *pair.connects, data), data);
}

TEST(Tls, says_not_now_when_nothing_has_come) {
  const Pair pair;
  ASSERT_EQ(pair.meet(), kBothDone);
  std::byte room[8];
  EXPECT_EQ(pair.connects->read(room), 0);
}

TEST(Tls, outlives_the_context_it_was_made_from) {
  auto context = std::make_unique<TlsContext>();
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  {
    Tls connects(*context, ends[0], HandshakeRole::connects, Token{});
    Tls accepts(*context, ends[1], HandshakeRole::accepts, Token{});
    context.reset();
    for (int i = 0; i < 4; ++i) {
      connects.poll();
      accepts.poll();
    }
    const auto data = numbers(100);
    EXPECT_EQ(carry(connects, accepts, data), data);
  }
  for (const int end : ends) ::close(end);
}

TEST(Tls, refuses_an_end_with_another_key) {
  Token other;
  other.bytes[31] = std::byte{1};
  const Pair pair(other);
  EXPECT_EQ(pair.meet(), std::pair(Progress::failed, Progress::failed));
  EXPECT_NE(pair.accepts->why().find("binder does not verify"), std::string::npos)
      << pair.accepts->why();
  EXPECT_NE(pair.connects->why().find("gave up TLS"), std::string::npos) << pair.connects->why();
}

TEST(Tls, refuses_an_end_that_speaks_in_the_clear) {
  const Pair pair;
  const char words[] = "SNW1, and what else a plain rank would say after its handshake";
  ASSERT_GT(::write(pair.ends[0], words, sizeof words), 0);
  EXPECT_EQ(pair.accepts->poll(), Progress::failed);
  EXPECT_NE(pair.accepts->why().find("sent what TLS refuses"), std::string::npos)
      << pair.accepts->why();
}

TEST(Tls, notices_bytes_that_nobody_sealed) {
  const Pair pair;
  ASSERT_EQ(pair.meet(), kBothDone);
  const unsigned char record[] = {23, 3,  3,  0,  20, 1,  2,  3,  4,  5,  6,  7, 8,
                                  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
  ASSERT_EQ(::write(pair.ends[0], record, sizeof record), std::ssize(record));
  std::byte room[8];
  EXPECT_EQ(pair.accepts->read(room), Tls::kOver);
  EXPECT_TRUE(pair.accepts->is_damaged());
  EXPECT_EQ(pair.accepts->read(room), Tls::kOver);
  // The other end hears of it, and knows that the damage is not its own.
  EXPECT_EQ(pair.connects->read(room), Tls::kOver);
  EXPECT_FALSE(pair.connects->is_damaged());
}

TEST(Tls, tells_the_end_of_a_connection) {
  Pair pair;
  ASSERT_EQ(pair.meet(), kBothDone);
  ASSERT_EQ(::shutdown(pair.ends[0], SHUT_WR), 0);
  std::byte room[8];
  EXPECT_EQ(pair.accepts->read(room), Tls::kOver);
  EXPECT_FALSE(pair.accepts->is_damaged());
  EXPECT_EQ(pair.accepts->why(), "closed the connection");
}

}  // namespace
}  // namespace sinew
