// kill -9 of random ranks at random moments: every survivor has an error that names the dead one,
// soon, and nothing is left behind. Counted in a network and folders of their own.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "support/fork_ranks.hpp"
#include "support/network.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

std::int64_t now_ns() { return Clock::now().time_since_epoch().count(); }

// What every rank runs until something breaks: one collective again and again.
struct Work {
  const Algorithm* algorithm;
  std::size_t count;
  bool computes;  // between calls, so that death finds some ranks outside the library

  void call(Communicator& c, std::vector<float>& in, std::vector<float>& out) const {
    c.run({.collective = algorithm->collective,
           .input = in.data(),
           .output = out.data(),
           .count = count,
           .options = {.algorithm = algorithm->name}});
  }
};

Work random_work(std::mt19937& random, int size, test::Medium medium) {
  const bool by_nodes = medium == test::Medium::routed && size > 2;
  std::vector<int> node_of;
  for (int rank = 0; by_nodes && rank < size; ++rank)
    node_of.push_back(test::Seat::node_of(rank, size));
  while (true) {
    const auto& algorithm = algorithms()[random() % algorithms().size()];
    if (!algorithm.fits({0, size, 0, 1, node_of}, {medium == test::Medium::shm, false})) continue;
    const std::size_t counts[] = {1, 100, 5000, 100'000};
    return {&algorithm, algorithm.collective == Collective::barrier ? 0 : counts[random() % 4],
            random() % 4 == 0};
  }
}

// "ready", then the error's code, peer, when the call began and when it failed; then whatever is
// wrong with how it failed.
void live_until_it_breaks(const test::Seat& seat, const Work& work) {
  const int descriptors = test::open_descriptors();
  {
    auto communicator = seat.join("life", {.timeout = 20s});
    std::vector<float> in(work.count * static_cast<std::size_t>(seat.size) + 1), out(in.size());
    communicator.barrier();
    seat.tell("ready");
    auto entered = now_ns();
    try {
      // A root that only sends would run far ahead; now and then all meet.
      for (int i = 0;; ++i) {
        if (work.computes) std::this_thread::sleep_for(1ms * (seat.rank + 1));
        entered = now_ns();
        i % 16 == 15 ? communicator.barrier() : work.call(communicator, in, out);
      }
    } catch (const Error& error) {
      seat.tell(fmt::format("{} | {} {} {} | {}", name(error.code()), error.context().peer, entered,
                            now_ns(), error.what()));
      const std::string first = error.what();
      const auto again = Clock::now();
      try {
        communicator.barrier();
        seat.tell("the next call did not fail");
      } catch (const Error& second) {
        if (first != second.what())
          seat.tell(fmt::format("the next call fails otherwise: {}", second.what()));
        if (Clock::now() - again > 100ms) seat.tell("the next call did not fail at once");
      }
    }
  }
  if (test::open_descriptors() != descriptors) seat.tell("leaks descriptors");
  if (test::maps_a_segment()) seat.tell("leaks the segment");
}

struct Count {
  int trials = 0, survivors = 0, named = 0;
  std::vector<double> took_ms;  // from the kill, or from entering the call if that was later
};

// What is wrong with a survivor's story; "" when nothing is.
std::string judge(const test::Told& told, const std::vector<int>& victims, std::int64_t killed,
                  Count& count) {
  ++count.survivors;
  if (told.lines.size() != 2 || told.status != 0)
    return fmt::format("ended with status {}: {}", told.status,
                       told.lines.empty() ? "" : told.lines.back());
  int peer = -1;
  long long entered = 0, failed = 0;
  if (std::sscanf(told.lines[1].c_str(), "peer lost | %d %lld %lld", &peer, &entered, &failed) != 3)
    return told.lines[1];
  if (std::find(victims.begin(), victims.end(), peer) == victims.end())
    return "names another: " + told.lines[1];
  ++count.named;
  count.took_ms.push_back(static_cast<double>(failed - std::max<long long>(killed, entered)) / 1e6);
  return count.took_ms.back() < 1000 ? "" : "late: " + told.lines[1];
}

// Mostly one rank dies, at times two at once.
std::string kill_some(unsigned seed, test::Medium medium, Count& count) {
  std::mt19937 random(seed);
  const int size = 2 + static_cast<int>(random() % 7);
  std::vector<int> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const std::vector<int> victims(order.begin(),
                                 order.begin() + (size > 2 && random() % 8 == 0 ? 2 : 1));
  const auto work = random_work(random, size, medium);
  const auto story =
      fmt::format("seed {}: rank {} of {} over {} in {} {} of {}{}", seed, victims.front(), size,
                  name(medium), name(work.algorithm->collective), work.algorithm->name, work.count,
                  victims.size() == 1 ? "" : fmt::format(", and rank {}", victims[1]));
  test::ForkedRanks ranks(
      size, [&](const test::Seat& seat) { live_until_it_breaks(seat, work); }, medium);
  if (!ranks.wait_for_lines(1, 20s)) return story + ": did not begin";
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
  const auto killed = now_ns();
  for (const int victim : victims) ranks.signal(victim, SIGKILL);
  const auto all = ranks.finish(20s);
  ++count.trials;
  for (const int rank : order) {
    const auto& told = all[static_cast<std::size_t>(rank)];
    if (rank == victims.front()) {
      if (told.status != 128 + SIGKILL) return fmt::format("{}: it lived on", story);
    } else if (told.status == 128 + SIGKILL && rank == victims.back()) {
      continue;  // unless the first death had ended it already, like any survivor
    } else if (const auto wrong = judge(told, victims, killed, count); !wrong.empty()) {
      return fmt::format("{}, survivor {} {}", story, rank, wrong);
    }
  }
  return "";
}

std::string kill_many(unsigned trials, test::Medium medium) {
  Count count;
  const int descriptors = test::open_descriptors();
  std::string wrong;
  for (unsigned seed = 1; seed <= trials && wrong.empty(); ++seed)
    wrong = kill_some(seed, medium, count);
  if (test::open_descriptors() != descriptors) wrong += "; descriptors were left open";
  if (const auto left = test::left_behind(); !left.empty()) wrong += "; left behind: " + left;
  auto& took = count.took_ms;
  std::sort(took.begin(), took.end());
  const auto at = [&](double part) {
    return took.empty() ? 0 : took[static_cast<std::size_t>(part * double(took.size() - 1))];
  };
  fmt::print(
      "{}: {} trials, {} survivors, {} right names; after {:.2f} ms (median), {:.1f} ms (p99), "
      "{:.1f} ms (max); left behind: {}\n",
      name(medium), count.trials, count.survivors, count.named, at(0.5), at(0.99), at(1),
      wrong.empty() ? "nothing" : "see below");
  std::fflush(stdout);
  return wrong;
}

TEST(LeftBehind, is_what_is_open_or_lies_about) {
  const auto told = test::in_own_place([]() -> std::string {
    const auto left = [] { return test::left_behind(std::chrono::milliseconds(50)); };
    if (const auto at_first = left(); !at_first.empty()) return "at first " + at_first;
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::listen(listener, 1) != 0 || left().find(", state 0A") == std::string::npos)
      return "missed a listener";
    sockaddr_in address{};
    socklen_t length = sizeof address;
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int client = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      return "cannot connect";
    const int server = ::accept(listener, nullptr, nullptr);
    ::close(listener);
    ::shutdown(client, SHUT_WR);  // now it waits for the other's end, and is still ours
    if (left().find(", state 05") == std::string::npos) return "missed a half-closed socket";
    ::close(client);
    ::close(server);
    std::ofstream("/dev/shm/left");
    if (left().find("/dev/shm/left") == std::string::npos) return "missed a file";
    std::filesystem::remove("/dev/shm/left");
    return left();
  });
  if (told.starts_with("skip: ")) GTEST_SKIP() << told;
  EXPECT_EQ(told, "");
}

class Kill : public testing::TestWithParam<test::Medium> {};
INSTANTIATE_TEST_SUITE_P(Over, Kill, testing::ValuesIn(test::kAllMedia),
                         [](const auto& medium) { return std::string(name(medium.param)); });

TEST_P(Kill, is_noticed_by_every_survivor_within_a_second_and_leaves_nothing) {
  const unsigned trials = std::getenv("SINEW_FULL") != nullptr ? 1000 : 100;
  const auto wrong = test::in_own_place([&] { return kill_many(trials, GetParam()); });
  if (wrong.starts_with("skip: ")) GTEST_SKIP() << wrong;
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace sinew
