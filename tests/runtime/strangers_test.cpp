// Connections that do not belong, during a run over sockets: the job does not notice, and whoever
// reads its warnings does. In a network of its own.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <new>
#include <random>

#include "support/fork_ranks.hpp"
#include "support/network.hpp"
#include "transport/rendezvous/socket.hpp"
#include "transport/trust/conversation.hpp"
#include "transport/trust/handshake.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

// Sanitizers hold on to what was freed, so that growth says nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeepsFreedMemory = true;
#else
constexpr bool kKeepsFreedMemory = false;
#endif

constexpr int kRanks = 4;
const Address kStore{Address::Kind::tcp, "127.0.0.1", 24680};
const std::string kToken(64, 'a');

// What every rank does: sums, all day, and compares; then how much it has grown.

long resident_kib() {
  std::ifstream file("/proc/self/statm");
  long size = 0, resident = 0;
  file >> size >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

struct Growth {
  long resident = resident_kib(), most_resident = resident;
  int descriptors = test::open_descriptors(), most_descriptors = descriptors;
  void look() {
    most_resident = std::max(most_resident, resident_kib());
    most_descriptors = std::max(most_descriptors, test::open_descriptors());
  }
};

Communicator enter_job(int rank, const Options& options) {
  ::setenv("SINEW_RANK", std::to_string(rank).c_str(), 1);
  ::setenv("SINEW_SIZE", std::to_string(kRanks).c_str(), 1);
  ::setenv("SINEW_RENDEZVOUS", to_string(kStore).c_str(), 1);
  ::setenv("SINEW_TOKEN", kToken.c_str(), 1);
  return connect(options);
}

// "ready", each warning, and at the end "grown KIB DESCRIPTORS SUMS"; anything else is wrong.
void sum_until(const std::atomic<int>& stop, const test::Seat& seat) {
  Options options;
  options.timeout = 20s;
  options.transport = "tcp";
  options.warn = [&](std::string_view text) { seat.tell(fmt::format("warned {}", text)); };
  auto comm = enter_job(seat.rank, options);
  std::vector<std::int32_t> data(2000);
  int sums = 0;
  const auto sum = [&](bool last) {
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<std::int32_t>(i) * (seat.rank + 1);
    data[0] = last ? 1 : 0;
    comm.allreduce(std::span(data));
    for (std::size_t i = 1; i < data.size(); ++i)
      if (data[i] != static_cast<std::int32_t>(i) * 10) return seat.tell("a sum is wrong"), false;
    ++sums;
    return data[0] == 0;  // all ranks end in the same round
  };
  for (int i = 0; i < 200; ++i) sum(false);
  Growth growth;
  seat.tell("ready");
  while (sum(stop.load() != 0))
    if (sums % 4 == 0) growth.look();
  growth.look();
  seat.tell(fmt::format("grown {} {} {}", growth.most_resident - growth.resident,
                        growth.most_descriptors - growth.descriptors, sums));
}

// Those who knock.

int knock() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kStore.port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  pollfd entry{socket, POLLOUT, 0};
  ::poll(&entry, 1, 1000);
  return socket;
}

void say(int socket, std::string_view words) {
  (void)!::send(socket, words.data(), words.size(), MSG_NOSIGNAL);
}

std::string random_bytes(std::mt19937& random, std::size_t most) {
  std::string bytes(1 + random() % most, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// What a true rank said once: to be said again by a stranger.
struct Recorded {
  std::string opening, claim;
};

// Speaks with the real server as a rank that it has already, which it refuses after the claim.
Recorded record_rank_1() {
  const Hello me{.rank = 1, .size = kRanks};
  Conversation talk(HandshakeRole::connects, Token::parse(kToken), me, {});
  const Socket socket(knock());
  Recorded recorded;
  while (talk.turn() == Conversation::Turn::read || talk.turn() == Conversation::Turn::write) {
    if (talk.turn() == Conversation::Turn::write) {
      const auto words = talk.words();
      const std::string text(reinterpret_cast<const char*>(words.data()), words.size());
      say(socket.get(), text);
      (recorded.opening.empty() ? recorded.opening : recorded.claim) = text;
      talk.sent(words.size());
      continue;
    }
    if (!wait_for(socket, POLLIN, Clock::now() + 5s)) break;
    const auto room = talk.room();
    const auto got = ::recv(socket.get(), room.data(), room.size(), 0);
    if (got <= 0) break;
    talk.took(static_cast<std::size_t>(got));
  }
  return recorded;
}

// The beginning of a TLS 1.2/1.3 ClientHello, as a scanner sends it.
const std::string kClientHello =
    "\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03 a client's random words"s;

enum Kind : unsigned {
  http,
  random,
  empty,
  half_open,
  replayed,
  truncated,
  tls,
  wrong_token,
  kinds
};
constexpr std::array<std::string_view, kinds> kKinds{
    "HTTP", "random", "empty", "half-open", "replayed", "truncated", "TLS", "wrong token"};

// Gives back the socket of those who stay; the others hang up.
int visit(Kind kind, std::mt19937& random, const Recorded& recorded) {
  const int socket = knock();
  switch (kind) {
    case http:
      say(socket, "GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n");
      break;
    case Kind::random:
      say(socket, random_bytes(random, 500));
      break;
    case empty:
      ::close(socket);
      return -1;
    case half_open:
      break;
    case replayed:
      say(socket, recorded.opening + recorded.claim);
      break;
    case truncated:
      say(socket, recorded.opening.substr(0, random() % recorded.opening.size()));
      break;
    case tls:
      say(socket, kClientHello);
      break;
    default: {
      Handshake stranger(socket, Handshake::Role::connects, Token::parse(std::string(64, 'b')),
                         {.rank = 1, .size = kRanks});
      EXPECT_EQ(stranger.wait(Clock::now() + 5s), Progress::failed);
      EXPECT_EQ(stranger.why(), "has another token");
      ::close(socket);
      return -1;
    }
  }
  return socket;
}

bool is_closed(int socket) {
  std::array<char, 256> words{};
  ssize_t got = 0;
  while ((got = ::recv(socket, words.data(), words.size(), 0)) > 0) {
  }
  return got == 0 || errno != EAGAIN;
}

// So many connections, of which the last two hundred that nobody closed stay open; gives back how
// many of these the server leaves open.
int knock_often(int count, bool wait_until_closed) {
  std::mt19937 random(5);
  const auto recorded = record_rank_1();
  if (recorded.claim.empty()) throw std::runtime_error("could not record a handshake");
  std::deque<int> open;
  for (int i = 0; i < count; ++i) {
    if (const int socket = visit(static_cast<Kind>(i % kinds), random, recorded); socket >= 0)
      open.push_back(socket);
    if (open.size() > 200) {
      ::close(open.front());
      open.pop_front();
    }
  }
  const auto count_open = [&] {
    return static_cast<int>(
        std::count_if(open.begin(), open.end(), [](int socket) { return !is_closed(socket); }));
  };
  // The server may have some in its queue yet.
  const auto until = Clock::now() + (wait_until_closed ? 8s : 2s);
  const int most = wait_until_closed ? 0 : 64;
  int still_open = count_open();
  for (; still_open > most && Clock::now() < until; still_open = count_open()) ::usleep(10'000);
  for (const int socket : open) ::close(socket);
  return still_open;
}

// A rank that comes when all are there; nobody should be told but itself and who reads warnings.
std::string come_late() {
  test::ForkedRanks late(1, [](const test::Seat& seat) {
    try {
      enter_job(2, {.timeout = 5s, .transport = "tcp"});
    } catch (const Error& error) {
      seat.tell(error.what());
    }
  });
  const auto told = late.finish(10s)[0];
  return told.lines.empty() ? "it joined" : told.lines.front();
}

int listeners() {
  constexpr std::string_view kListens = "0A";
  std::ifstream file("/proc/self/net/tcp");
  std::string line, slot, local, remote, state;
  int found = 0;
  for (std::getline(file, line); file >> slot >> local >> remote >> state; std::getline(file, line))
    found += state == kListens ? 1 : 0;
  return found;
}

std::string complaint_of(const test::Told& told, int rank) {
  long kib = 0;
  int descriptors = 0, sums = 0, warnings = 0;
  for (const auto& line : told.lines) {
    if (line == "ready") continue;
    if (line.starts_with("warned ")) {
      ++warnings;
      if (line.find("connection(s) to tcp://127.0.0.1:24680 turned away") == std::string::npos)
        return line;
    } else if (std::sscanf(line.c_str(), "grown %ld %d %d", &kib, &descriptors, &sums) != 3) {
      return line;
    }
  }
  fmt::print("  rank {}: {} right sums, memory +{} KiB, descriptors +{} at most, {} warning(s)\n",
             rank, sums, kib, descriptors, warnings);
  if (told.status != 0 || sums == 0) return fmt::format("ended with {}", told.status);
  if (!kKeepsFreedMemory && kib >= 1024) return fmt::format("grew by {} KiB", kib);
  // As many strangers as are kept, and the one that has just come.
  if (descriptors > (rank == 0 ? 64 + 1 : 0)) return fmt::format("{} descriptors", descriptors);
  if (warnings != (rank == 0 ? 1 : 0)) return fmt::format("{} warnings within a minute", warnings);
  return "";
}

std::string disturb(int count, std::atomic<int>& stop) {
  test::ForkedRanks ranks(kRanks, [&](const test::Seat& seat) { sum_until(stop, seat); });
  if (!ranks.wait_for_lines(1, 20s)) return "the job did not begin";
  std::string wrong;
  if (listeners() != 1) wrong += fmt::format("{} listeners; ", listeners());
  const auto begin = Clock::now();
  const int still_open = knock_often(count, count > 1000);
  const auto took = std::chrono::duration<double>(Clock::now() - begin).count();
  const auto late = come_late();
  if (late.find("rank 2, which has joined from") == std::string::npos) wrong += late + "; ";
  stop = 1;
  const auto all = ranks.finish(20s);
  fmt::print("{} strangers in {:.1f} s of {} kinds; {} still open at the end\n", count, took,
             int{kinds}, still_open);
  if (still_open > (count > 1000 ? 0 : 64)) wrong += "strangers were not closed; ";
  for (int rank = 0; rank < kRanks; ++rank)
    if (const auto what = complaint_of(all[static_cast<std::size_t>(rank)], rank); !what.empty())
      wrong += fmt::format("rank {}: {}; ", rank, what);
  std::fflush(stdout);
  return wrong + test::left_behind();
}

TEST(Strangers, do_not_disturb_a_running_job) {
  const int count = std::getenv("SINEW_FULL") != nullptr ? 10'000 : 1'000;
  void* shared = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* stop = new (shared) std::atomic<int>(0);
  const auto wrong = test::in_own_place([&] { return disturb(count, *stop); });
  ::munmap(shared, sizeof(std::atomic<int>));
  if (wrong.starts_with("skip: ")) GTEST_SKIP() << wrong;
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace sinew
