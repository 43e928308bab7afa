// Finding each other over sockets: who is missing, who does not belong, and who only knocks.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <random>
#include <thread>

#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"
#include "support/shared_store.hpp"
#include "transport/tcp/mesh.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

TcpJoin seat(const std::shared_ptr<Store>& store, int rank, int size) {
  TcpJoin join;
  join.store = store;
  join.rank = rank;
  join.size = size;
  return join;
}

std::string refusal_of(const TcpJoin& join) {
  try {
    (void)join_tcp(join, Clock::now() + 50ms);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument) << error.what();
    return error.what();
  }
  return "";
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(TcpJoin, ranks_that_leave_at_once_trouble_nobody) {
  for (int trial = 0; trial < 20; ++trial) {
    const auto wrong = test::fork_ranks(
        4, [](const test::Seat& seat) { (void)seat.join(); }, test::Medium::tcp);
    ASSERT_TRUE(wrong.empty()) << wrong.front();
  }
}

TEST(TcpJoin, names_the_ranks_that_do_not_come) {
  const auto store = std::make_shared<test::SharedStore>();
  try {
    (void)join_tcp(seat(store, 0, 3), Clock::now() + 50ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::timeout);
    EXPECT_TRUE(has(error.what(), "1, 2 of 3")) << error.what();
  }
}

TEST(TcpJoin, refuses_what_cannot_work_and_says_what_to_do) {
  const auto store = std::make_shared<test::SharedStore>();
  auto join = seat(store, 3, 3);
  EXPECT_TRUE(has(refusal_of(join), "rank 3 is not one of 3"));
  join.rank = 0;
  join.store = nullptr;
  EXPECT_TRUE(has(refusal_of(join), "store"));
  join.store = store;
  join.options.chunk = 100;
  EXPECT_TRUE(has(refusal_of(join), "a multiple of 64"));
  join.options.chunk = std::size_t{1} << 20;
  EXPECT_TRUE(has(refusal_of(join), "262144"));
  join.options = {};
  join.options.slice = 100;
  EXPECT_TRUE(has(refusal_of(join), "slices of 100 bytes"));
  join.options = {};
  join.options.streams = 17;
  EXPECT_TRUE(has(refusal_of(join), "1 to 16"));
  join.options = {};
  join.options.bind = "0.0.0.0";
  EXPECT_TRUE(has(refusal_of(join), "every interface"));
  join.options.bind = "::";
  EXPECT_TRUE(has(refusal_of(join), "every interface"));
  join.options.bind = "eth77";
  EXPECT_TRUE(has(refusal_of(join), "neither an address nor an interface"));
}

TEST(TcpJoin, hosts_are_told_apart) {
  const auto at = [](std::string host, std::string_view address = "[::1]:4711") {
    return tcp::Card{tcp::parse_address(address), std::move(host), "f", 4, ""};
  };
  EXPECT_TRUE(tcp::are_on_one_host({at("a")}));
  EXPECT_TRUE(tcp::are_on_one_host({at("a"), at("a"), at("a")}));
  EXPECT_TRUE(tcp::are_on_one_host({at("a"), at("a", "[::1]:4712")}));
  EXPECT_FALSE(tcp::are_on_one_host({at("a"), at("a"), at("b")}));
  EXPECT_FALSE(tcp::are_on_one_host({at("a"), at("a", "[::2]:4711")}));
}

TEST(TcpJoin, ranks_with_different_options_are_refused_and_both_are_named) {
  const auto store = std::make_shared<test::SharedStore>();
  std::vector<std::string> stories(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      auto join = seat(store, rank, 2);
      join.options.streams = 1 + rank;
      try {
        (void)join_tcp(join, Clock::now() + 5s);
      } catch (const Error& error) {
        stories[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& story : stories) {
    EXPECT_TRUE(has(story, "streams=1")) << story;
    EXPECT_TRUE(has(story, "streams=2")) << story;
  }
}

/// Says that everybody has this rank's options, as a store might that strangers can write to.
class FlatteringStore final : public Store {
 public:
  FlatteringStore(std::shared_ptr<Store> inner, std::string agreed)
      : inner_(std::move(inner)), agreed_(std::move(agreed)) {}
  void set(std::string_view key, std::string_view value) override { inner_->set(key, value); }
  std::string get(std::string_view key, Deadline deadline) override {
    auto card = tcp::read_card(inner_->get(key, deadline));
    card.agreed = agreed_;
    return tcp::write_card(card);
  }

 private:
  std::shared_ptr<Store> inner_;
  std::string agreed_;
};

/// What each of two ranks has to say when only one of them was told to speak TLS.
std::array<std::string, 2> half_sealed(int sealed, bool flatter) {
  const auto store = std::make_shared<test::SharedStore>();
  std::array<std::string, 2> stories;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      auto join = seat(store, rank, 2);
      join.options.tls = rank == sealed;
      if (flatter)
        join.store = std::make_shared<FlatteringStore>(
            store, fmt::format("chunk=262144,slice=auto,streams=1,checksum=on,tls={}",
                               join.options.tls ? "on" : "off"));
      try {
        (void)join_tcp(join, Clock::now() + 1s);
      } catch (const Error& error) {
        stories[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (auto& thread : threads) thread.join();
  return stories;
}

TEST(TcpJoin, a_rank_without_tls_is_refused_by_ranks_with_it_and_all_are_told) {
  for (const int sealed : {0, 1}) {
    for (const auto& story : half_sealed(sealed, false)) {
      EXPECT_TRUE(has(story, "tls=on")) << story;
      EXPECT_TRUE(has(story, "tls=off")) << story;
    }
    for (const auto& story : half_sealed(sealed, true)) {
      EXPECT_TRUE(has(story, "speak")) << story;
      EXPECT_TRUE(has(story, "give --tls (SINEW_TLS=1) to all ranks, or to none")) << story;
    }
  }
}

TEST(TcpJoin, the_death_of_a_rank_is_seen_through_tls) {
  TcpOptions options;
  options.tls = true;
  test::ForkedRanks ranks(
      3,
      [](const test::Seat& seat) {
        auto communicator = seat.join();
        std::vector<float> data(300'000, 1);
        communicator.allreduce(std::span(data));
        if (seat.rank == 1) ::_exit(0);
        try {
          for (int i = 0; i < 3; ++i) communicator.allreduce(std::span(data));
        } catch (const Error& error) {
          seat.tell(error.what());
        }
      },
      test::Medium::tcp, options);
  const auto told = ranks.finish(20s);
  for (const int rank : {0, 2}) {
    const auto& lines = told[static_cast<std::size_t>(rank)].lines;
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_TRUE(has(lines[0], "rank 1 is gone")) << lines[0];
  }
}

TEST(TcpJoin, works_over_ipv6_and_by_the_name_of_an_interface) {
  for (const auto where : {"::1", "lo"}) {
    TcpOptions options;
    options.bind = where;
    const auto stories = test::fork_ranks(
        3,
        [](const test::Seat& seat) {
          auto communicator = seat.join();
          std::vector<float> data(100'000, 1);
          communicator.allreduce(std::span(data));
          if (data[99'999] != 3) seat.tell("wrong sum");
        },
        test::Medium::tcp, options);
    EXPECT_TRUE(stories.empty()) << where << ": " << stories.front();
  }
}

void expect_told_of_another_token(bool tls) {
  const auto store = std::make_shared<test::SharedStore>();
  std::string inside, outside;
  std::thread honest([&] {
    try {
      auto join = seat(store, 0, 2);
      join.options.tls = tls;
      (void)join_tcp(join, Clock::now() + 800ms);
    } catch (const Error& error) {
      inside = error.what();
    }
  });
  auto stranger = seat(store, 1, 2);
  stranger.token.bytes[0] = std::byte{1};
  stranger.options.tls = tls;
  try {
    (void)join_tcp(stranger, Clock::now() + 800ms);
  } catch (const Error& error) {
    outside = error.what();
  }
  honest.join();
  EXPECT_TRUE(has(outside, "cannot connect to rank 0")) << outside;
  EXPECT_TRUE(has(outside, "token")) << outside;
  EXPECT_TRUE(has(inside, "rank(s) 1 of 2")) << inside;
  EXPECT_TRUE(has(inside, "turned away, one of which")) << inside;
}

TEST(TcpJoin, a_rank_with_another_token_is_turned_away_and_told) {
  for (const bool tls : {false, true}) expect_told_of_another_token(tls);
}

/// Connects to a rank's port, as anybody can.
class Stranger {
 public:
  explicit Stranger(const tcp::Address& address) : socket_(tcp::connect_to(address, {})) {
    pollfd entry{socket_.get(), POLLOUT, 0};
    ::poll(&entry, 1, 1000);
    error_ = tcp::connect_error(socket_);
  }
  [[nodiscard]] int error() const { return error_; }
  void say(std::string_view text) const {
    (void)::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }

 private:
  tcp::Socket socket_;
  int error_;
};

tcp::Address listener_of(Store& store, int rank) {
  return tcp::read_card(store.get(fmt::format("tcp/0/all/{}", rank), Clock::now() + 5s)).address;
}

// What people and scanners send to open ports.
std::string something(std::mt19937& random, unsigned kind) {
  if (kind == 0) return "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (kind == 1) return {};
  std::string bytes(1 + random() % 300, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Rank 1 comes late; until then rank 0 sees nothing but strangers, more than it has room for.
TEST(TcpJoin, hundreds_of_strangers_at_the_door_disturb_nobody) {
  const auto store = std::make_shared<test::SharedStore>();
  std::uint64_t turned_away = 0;
  std::string story;
  std::thread rank_0([&] {
    try {
      turned_away = tcp::connect_mesh(seat(store, 0, 2), Clock::now() + 20s).strangers;
    } catch (const Error& error) {
      story = error.what();
    }
  });
  // Rank 0 opens its door when all have left their cards: rank 1 leaves its own, and waits.
  std::vector<Stranger> silent;
  const auto door = listener_of(*store, 0);
  class LateStore final : public Store {
   public:
    LateStore(std::shared_ptr<Store> inner, std::function<void()> before)
        : inner_(std::move(inner)), before_(std::move(before)) {}
    void set(std::string_view key, std::string_view value) override {
      inner_->set(key, value);
      before_();
    }
    std::string get(std::string_view key, Deadline deadline) override {
      return inner_->get(key, deadline);
    }

   private:
    std::shared_ptr<Store> inner_;
    std::function<void()> before_;
  };
  const auto late = std::make_shared<LateStore>(store, [&] {
    std::mt19937 random(7);
    for (unsigned i = 0; i < 300; ++i) {
      const Stranger stranger(door);
      stranger.say(something(random, i % 3));
    }
    for (int i = 0; i < 400; ++i) silent.emplace_back(door);
    silent.back().say("S");  // half of nothing
  });
  const auto begin = Clock::now();
  try {
    (void)tcp::connect_mesh(seat(late, 1, 2), Clock::now() + 20s);
  } catch (const Error& error) {
    story += error.what();
  }
  rank_0.join();
  EXPECT_EQ(story, "");
  EXPECT_GE(turned_away, 300U);
  EXPECT_LT(Clock::now() - begin, 10s);
}

TEST(TcpJoin, once_joined_nobody_listens_any_more) {
  const auto store = std::make_shared<test::SharedStore>();
  std::vector<std::unique_ptr<Transport>> ranks(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      ranks[static_cast<std::size_t>(rank)] = join_tcp(seat(store, rank, 2), Clock::now() + 5s);
    });
  for (auto& thread : threads) thread.join();
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(Stranger(listener_of(*store, rank)).error(), ECONNREFUSED);
}

TEST(TcpJoin, leaves_no_descriptor_behind) {
  const int before = test::open_descriptors();
  test::LocalSetup setup;
  setup.tcp = true;
  test::on_local(
      4, [](Communicator& c) { c.dup().barrier(); }, setup);
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST(Cards, come_back_as_they_went_and_nonsense_does_not) {
  tcp::Card card{tcp::parse_address("[::1]:4711"), "a-b-c", "f0f", 12, "chunk=64,streams=1"};
  const auto back = tcp::read_card(tcp::write_card(card));
  EXPECT_EQ(back.address.text(), "[::1]:4711");
  EXPECT_EQ(back.host, card.host);
  EXPECT_EQ(back.cpus, card.cpus);
  EXPECT_EQ(back.quota, 12);
  EXPECT_EQ(back.agreed, card.agreed);
  for (const auto bad :
       {"", "hello", "sinew-tcp-2 nowhere h 1 1 a", "sinew-tcp-2 1.2.3.4:0 h 1 1 a",
        "sinew-tcp-9 127.0.0.1:80 h 1 1 a", "sinew-tcp-2 127.0.0.1:99999 h 1 1 a"})
    EXPECT_THROW(tcp::read_card(bad), Error) << bad;
}

TEST(Cards, tell_how_many_cores_ranks_share) {
  const auto card = [](const std::string& host, const std::string& cpus, int quota = 1000) {
    return tcp::Card{{}, host, cpus, quota, ""};
  };
  EXPECT_EQ(tcp::shared_cores({card("a", "f"), card("a", "f")}), 4);
  EXPECT_EQ(tcp::shared_cores({card("a", "1"), card("a", "2")}), 2);  // each bound to one
  EXPECT_EQ(tcp::shared_cores({card("a", "3"), card("b", "3")}), 4);  // two machines
  EXPECT_EQ(tcp::shared_cores({card("a", "ff", 1), card("a", "ff", 1)}), 1);
  // Four ranks share one processor of `a`; the two of `b` have one each, and wait with them.
  EXPECT_EQ(tcp::shared_cores({card("a", "1"), card("a", "1"), card("a", "1"), card("a", "1"),
                               card("b", "3"), card("b", "3")}),
            1);
}

}  // namespace
}  // namespace sinew
