// What every store promises, then what a served one does with those who do not belong.
#include "transport/rendezvous/store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include <sinew/error.hpp>
#include "support/fork_ranks.hpp"
#include "support/network.hpp"
#include "transport/rendezvous/file_store.hpp"
#include "transport/rendezvous/store_client.hpp"
#include "transport/rendezvous/store_server.hpp"
#include "transport/trust/handshake.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

Deadline in(std::chrono::milliseconds time) { return Clock::now() + time; }

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

template <class Function>
std::string story(Errc code, Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

std::string fresh_name() {
  static std::atomic<int> names{0};
  return fmt::format("sinew-test-store-{}-{}", ::getpid(), ++names);
}

struct Folder {
  std::string path;
  Folder() {
    std::string pattern = "/tmp/sinew-test-XXXXXX";
    path = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

const Address kAnyPort{Address::Kind::tcp, "127.0.0.1", 0};

/// A store and as many ways into it as there are ranks.
class World {
 public:
  virtual ~World() = default;
  virtual std::unique_ptr<Store> enter(int rank) = 0;
  [[nodiscard]] virtual std::string name() const = 0;
};

class Served final : public World {
 public:
  explicit Served(const Address& address) : server_(address, token_, {}) {}
  std::unique_ptr<Store> enter(int rank) override {
    return std::make_unique<StoreClient>(server_.address(), token_, Hello{.rank = rank}, in(10s));
  }
  [[nodiscard]] std::string name() const override { return to_string(server_.address()); }

 private:
  Token token_ = Token::make();
  StoreServer server_;
};

class Filed final : public World {
 public:
  std::unique_ptr<Store> enter(int rank) override {
    return std::make_unique<FileStore>(folder_.path, rank, 8);
  }
  [[nodiscard]] std::string name() const override { return "file://" + folder_.path; }

 private:
  Folder folder_;
};

std::unique_ptr<World> make_world(std::string_view kind) {
  if (kind == "file") return std::make_unique<Filed>();
  if (kind == "name")
    return std::make_unique<Served>(Address{Address::Kind::name, fresh_name(), 0});
  if (kind == "tcp6") return std::make_unique<Served>(Address{Address::Kind::tcp, "::1", 0});
  return std::make_unique<Served>(kAnyPort);
}

class EveryStore : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<World> world_ = make_world(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Kinds, EveryStore, testing::Values("tcp", "tcp6", "name", "file"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(EveryStore, what_one_sets_others_get) {
  const auto a = world_->enter(0), b = world_->enter(1);
  const std::string all_bytes = [] {
    std::string text;
    for (int i = 0; i < 256; ++i) text += static_cast<char>(i);
    return text;
  }();
  const std::pair<std::string, std::string> entries[] = {
      {"plain", "value"},
      {"empty", ""},
      {"address/3 with: odd %characters", all_bytes},
      {"../../escape", "stays inside"},
      {std::string(60, '/'), "many"},
      {"long", std::string(kLongestValue, 'x')},
  };
  for (const auto& [key, value] : entries) a->set(key, value);
  for (const auto& [key, value] : entries) EXPECT_EQ(b->get(key, in(10s)), value) << key;
  EXPECT_EQ(a->get("plain", Clock::now() - 1s), "value");  // what is there needs no time
}

TEST_P(EveryStore, a_key_is_set_once) {
  const auto a = world_->enter(0), b = world_->enter(1);
  a->set("port", "4000");
  a->set("port", "4000");
  b->set("port", "4000");
  const auto text = story(Errc::invalid_argument, [&] { b->set("port", "4001"); });
  EXPECT_TRUE(has(text, "'port'") && has(text, "'4000'") && has(text, "'4001'")) << text;
  EXPECT_TRUE(has(text, world_->name())) << text;
  EXPECT_EQ(b->get("port", in(10s)), "4000");
}

TEST_P(EveryStore, get_waits_for_who_comes_later) {
  const auto a = world_->enter(0), b = world_->enter(1);
  auto later = std::async(std::launch::async, [&] { return a->get("late", in(20s)); });
  std::this_thread::sleep_for(30ms);
  b->set("late", "here");
  EXPECT_EQ(later.get(), "here");
}

TEST_P(EveryStore, a_timeout_names_key_store_and_time) {
  const auto a = world_->enter(0);
  const auto begin = Clock::now();
  const auto text = story(Errc::timeout, [&] { (void)a->get("address/7", in(120ms)); });
  EXPECT_GE(Clock::now() - begin, 120ms);
  EXPECT_TRUE(has(text, "'address/7'") && has(text, world_->name()) && has(text, "0.1 s")) << text;
  a->set("address/7", "x");  // and the store is as good as before
  EXPECT_EQ(a->get("address/7", in(10s)), "x");
}

TEST_P(EveryStore, entries_beyond_the_limits_are_refused) {
  const auto a = world_->enter(0);
  EXPECT_TRUE(has(story(Errc::invalid_argument, [&] { a->set("", "x"); }), "1 to 200 bytes"));
  EXPECT_TRUE(has(story(Errc::invalid_argument, [&] { a->set(std::string(201, 'k'), "x"); }),
                  "1 to 200 bytes"));
  EXPECT_TRUE(
      has(story(Errc::invalid_argument, [&] { a->set("k", std::string(kLongestValue + 1, 'x')); }),
          "65537 bytes, more than 65536"));
  EXPECT_TRUE(has(story(Errc::invalid_argument, [&] { (void)a->get("", in(1s)); }), "1 to 200"));
}

TEST_P(EveryStore, many_ranks_exchange_what_they_have) {
  constexpr int kRanks = 8;
  std::vector<std::future<int>> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.push_back(std::async(std::launch::async, [this, rank] {
      const auto store = world_->enter(rank);
      store->set(fmt::format("address/{}", rank), std::to_string(rank * rank));
      int sum = 0;
      for (int peer = 0; peer < kRanks; ++peer)
        sum += std::stoi(store->get(fmt::format("address/{}", peer), in(20s)));
      return sum;
    }));
  for (auto& rank : ranks) EXPECT_EQ(rank.get(), 140);
}

// Files

TEST(FileStore, leaves_nothing_behind) {
  const Folder folder;
  const auto path = folder.path + "/job";
  {
    FileStore a(path, 0, 2);
    EXPECT_TRUE(a.is_private());
    {
      FileStore b(path, 1, 2);
      a.set("one", "1");
      b.set("two", "2");
    }
    EXPECT_EQ(a.get("two", in(1s)), "2");  // who has left can still be heard
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileStore, a_part_of_a_value_is_not_taken_for_it) {
  const Folder folder;
  FileStore store(folder.path, 0, 1);
  store.set("key", "a value of some length");
  const auto file = folder.path + "/key-key";
  for (const std::size_t bytes : {0, 4, 9, 12, 20}) {
    std::filesystem::resize_file(file, bytes);
    EXPECT_TRUE(has(story(Errc::timeout, [&] { (void)store.get("key", in(5ms)); }), "'key'"));
  }
}

TEST(FileStore, does_not_follow_links_into_other_places) {
  const Folder folder;
  FileStore store(folder.path, 0, 1);
  std::filesystem::create_symlink("/etc/passwd", folder.path + "/key-trap");
  EXPECT_TRUE(has(story(Errc::system, [&] { (void)store.get("trap", in(1s)); }), "key-trap"));
}

TEST(FileStore, says_what_is_wrong_with_its_folder) {
  const Folder folder;
  EXPECT_TRUE(has(story(Errc::system, [&] { FileStore store(folder.path + "/a/b", 0, 1); }),
                  "cannot make the folder"));
  std::ofstream(folder.path + "/file") << "x";
  EXPECT_TRUE(has(story(Errc::system, [&] { FileStore store(folder.path + "/file", 0, 1); }),
                  "not a folder"));
  ::chmod(folder.path.c_str(), 0755);
  EXPECT_FALSE(FileStore(folder.path, 0, 1).is_private());
}

// A served store and strangers

std::string join_story(const Address& address, const Token& token, const Hello& me,
                       Errc code = Errc::invalid_argument) {
  return story(code, [&] { StoreClient(address, token, me, in(2s)); });
}

TEST(StoreServer, who_does_not_belong_is_told_why) {
  const auto token = Token::make();
  const StoreServer server(kAnyPort, token, {.size = 4, .epoch = 3});
  const auto& at = server.address();
  const Hello good{.epoch = 3, .rank = 1, .size = 4};
  const StoreClient first(at, token, good, in(2s));

  const auto twice = join_story(at, token, good);
  EXPECT_TRUE(has(twice, "rank 1, which has joined from 127.0.0.1:")) << twice;
  EXPECT_TRUE(has(twice, to_string(at))) << twice;
  const auto size = join_story(at, token, {.epoch = 3, .rank = 2, .size = 8});
  EXPECT_TRUE(has(size, "counts 8 ranks, not 4")) << size;
  EXPECT_TRUE(has(join_story(at, token, {.epoch = 2, .rank = 2, .size = 4}), "epoch 2, not to 3"));
  EXPECT_TRUE(has(join_story(at, token, {.epoch = 3, .rank = 9, .size = 4}), "does not exist"));
  EXPECT_TRUE(
      has(join_story(at, Token::make(), {.epoch = 3, .rank = 2, .size = 4}), "has another token"));
}

TEST(StoreServer, a_port_in_use_is_told) {
  const auto token = Token::make();
  const StoreServer server(kAnyPort, token, {});
  const auto text =
      story(Errc::invalid_argument, [&] { StoreServer second(server.address(), token, {}); });
  EXPECT_TRUE(has(text, fmt::format("port {} is in use", server.address().port))) << text;
  const Address name{Address::Kind::name, fresh_name(), 0};
  const StoreServer named(name, token, {});
  EXPECT_TRUE(has(story(Errc::invalid_argument, [&] { StoreServer second(name, token, {}); }),
                  "is another job using it?"));
}

TEST(StoreServer, addresses_that_lead_nowhere_are_told_apart) {
  const auto token = Token::make();
  const auto unresolved = story(Errc::invalid_argument, [&] {
    StoreServer server({Address::Kind::tcp, "a..b", 4000}, token, {});
  });
  EXPECT_TRUE(has(unresolved, "the name 'a..b' does not resolve here")) << unresolved;
  const auto nobody = story(Errc::timeout, [&] {
    StoreClient({Address::Kind::tcp, "127.0.0.1", 1}, token, {.rank = 1}, in(50ms));
  });
  EXPECT_TRUE(has(nobody, "nobody listens at tcp://127.0.0.1:1 after 0.0 s")) << nobody;
  const auto said = test::in_own_network([&]() -> std::string {
    const auto elsewhere = story(Errc::invalid_argument, [&] {
      StoreServer server({Address::Kind::tcp, "10.9.8.7", 4000}, token, {});
    });
    if (!has(elsewhere, "10.9.8.7:4000 is no address of this host")) return elsewhere;
    const auto unreachable = story(Errc::timeout, [&] {
      StoreClient({Address::Kind::tcp, "10.9.8.7", 4000}, token, {.rank = 1}, in(20ms));
    });
    if (!has(unreachable, "cannot be reached (Network is unreachable)")) return unreachable;
    const auto resolver = story(Errc::timeout, [&] {
      StoreClient({Address::Kind::tcp, "node7.invalid", 4000}, token, {.rank = 1}, in(20ms));
    });
    return has(resolver, "the resolver did not answer for 'node7.invalid'") ? "" : resolver;
  });
  if (said.starts_with("skip")) GTEST_SKIP() << said;
  EXPECT_EQ(said, "");
}

TEST(StoreServer, whoever_waits_for_a_rank_that_ends_is_told_at_once) {
  const auto token = Token::make();
  const StoreServer server(kAnyPort, token, {.size = 3});
  StoreClient a(server.address(), token, {.rank = 0, .size = 3}, in(5s));
  auto b =
      std::make_unique<StoreClient>(server.address(), token, Hello{.rank = 1, .size = 3}, in(5s));
  a.set("early", "1");
  b.reset();  // which says that it leaves: nothing wrong with that
  EXPECT_TRUE(has(story(Errc::timeout, [&] { (void)a.get("b's", in(30ms)); }), "nobody has set"));
  // Whoever is killed says nothing.
  const auto told = test::fork_ranks(1, [&](const test::Seat&) {
    StoreClient killed(server.address(), token, {.rank = 2, .size = 3}, in(5s));
    killed.set("c is here", "");
    std::this_thread::sleep_for(50ms);
    ::_exit(0);
  });
  EXPECT_TRUE(told.empty());
  const auto begin = Clock::now();
  const auto text = story(Errc::peer_lost, [&] { (void)a.get("c's", in(60s)); });
  EXPECT_LT(Clock::now() - begin, 30s);
  EXPECT_TRUE(has(text, "rank 2 (127.0.0.1:") && has(text, "has ended")) << text;
  EXPECT_EQ(a.get("early", in(1s)), "1");
}

TEST(StoreServer, its_end_is_told_to_those_who_wait) {
  const auto token = Token::make();
  auto server = std::make_unique<StoreServer>(kAnyPort, token, StoreServer::Options{});
  StoreClient client(server->address(), token, {.rank = 1}, in(5s));
  auto waiting = std::async(std::launch::async, [&] {
    return story(Errc::peer_lost, [&] { (void)client.get("never", in(60s)); });
  });
  std::this_thread::sleep_for(20ms);
  server.reset();
  const auto text = waiting.get();
  EXPECT_TRUE(has(text, "closed the connection: rank 0 has ended")) << text;
  EXPECT_TRUE(has(story(Errc::peer_lost, [&] { client.set("x", "y"); }), "the store at"));
}

TEST(StoreServer, holds_no_more_than_it_may) {
  const auto token = Token::make();
  const StoreServer server(kAnyPort, token, {.most_bytes = 200'000});
  StoreClient client(server.address(), token, {}, in(5s));
  int held = 0;
  const auto text = story(Errc::invalid_argument, [&] {
    for (; held < 100; ++held) client.set(std::to_string(held), std::string(50'000, 'x'));
  });
  EXPECT_EQ(held, 3);
  EXPECT_TRUE(has(text, "may hold 200000")) << text;
  EXPECT_EQ(client.get("2", in(1s)).size(), 50'000U);
}

int raw_connection(const Address& address) {
  auto socket = connect_to(address, in(5s));
  return ::dup(socket.get());
}

// Sockets that say nothing, nonsense, or half of something; the ranks must not notice.
TEST(StoreServer, a_thousand_strangers_keep_nobody_out_and_are_counted) {
  const auto token = Token::make();
  std::atomic<int> counted{0}, lines{0};
  StoreServer::Options options;
  options.size = 2;
  options.between_warnings = 100ms;
  options.warn = [&](std::string_view text) {
    counted += std::stoi(std::string(text));
    ++lines;
  };
  const auto begin = Clock::now();
  const StoreServer server(kAnyPort, token, options);
  const auto& at = server.address();
  StoreClient a(at, token, {.rank = 0, .size = 2}, in(5s));
  std::mt19937 random(7);
  std::vector<int> strangers;
  const int count = std::getenv("SINEW_FULL") != nullptr ? 10'000 : 1'000;
  for (int i = 0; i < count; ++i) {
    const int stranger = raw_connection(at);
    ASSERT_GE(stranger, 0);
    std::string words(static_cast<std::size_t>(i % 4 == 0 ? 0 : random() % 200), ' ');
    for (auto& letter : words) letter = static_cast<char>(random());
    if (i % 4 == 1) words = std::string("sinew-hs").substr(0, random() % 9);
    if (i % 4 == 2) words = "GET / HTTP/1.1\r\n\r\n";
    (void)!::send(stranger, words.data(), words.size(), MSG_NOSIGNAL);
    strangers.push_back(stranger);
    if (strangers.size() > 200) {
      ::close(strangers.front());
      strangers.erase(strangers.begin());
    }
    if (i == count / 2) a.set("meanwhile", "served");
  }
  StoreClient b(at, token, {.rank = 1, .size = 2}, in(20s));
  EXPECT_EQ(b.get("meanwhile", in(5s)), "served");
  for (const int stranger : strangers) ::close(stranger);
  for (const auto until = in(5s); counted < count && Clock::now() < until;)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(counted, count);
  EXPECT_LE(lines, 1 + (Clock::now() - begin) / 100ms);
}

// A client that has proven itself and then talks nonsense loses its connection, no more.
TEST(StoreServer, nonsense_after_the_handshake_ends_one_connection) {
  const auto token = Token::make();
  const StoreServer server(kAnyPort, token, {});
  StoreClient good(server.address(), token, {}, in(5s));
  std::mt19937 random(11);
  for (int trial = 0; trial < 50; ++trial) {
    const auto socket = connect_to(server.address(), in(5s));
    Handshake handshake(socket.get(), Handshake::Role::connects, token, {});
    ASSERT_EQ(handshake.wait(in(5s)), Progress::done) << handshake.why();
    std::string words(64, '\xff');
    if (trial % 2 == 0)
      for (auto& letter : words) letter = static_cast<char>(random());
    words[1] = 1;  // no kind of frame has this
    (void)!::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL);
    ASSERT_TRUE(wait_for(socket, POLLIN, in(5s)));
    char letter = 0;
    EXPECT_LE(::recv(socket.get(), &letter, 1, 0), 0);
  }
  good.set("still", "here");
  EXPECT_EQ(good.get("still", in(1s)), "here");
}

auto threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(StoreServer, leaves_no_thread_and_no_descriptor) {
  const auto token = Token::make();
  const int before = test::open_descriptors();
  const auto threads = threads_of_this_process();  // sanitizers have one of their own
  for (int i = 0; i < 20; ++i) {
    const StoreServer server(kAnyPort, token, {});
    StoreClient client(server.address(), token, {}, in(5s));
    client.set("x", "y");
  }
  EXPECT_EQ(test::open_descriptors(), before);
  EXPECT_EQ(threads_of_this_process(), threads);
}

}  // namespace
}  // namespace sinew
