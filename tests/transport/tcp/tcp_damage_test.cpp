// A connection that changes what it carries: an error on every rank, never a wrong sum.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <random>
#include <thread>

#include <sinew/communicator.hpp>

#include "support/shared_store.hpp"
#include "transport/tcp/mesh.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

/// Stands between rank 1 and rank 0, passes everything on, and flips one bit: of the byte `at` on
/// the connection `which`, counted in the order they were made.
class Meddler {
 public:
  Meddler(tcp::Address behind, std::size_t which, std::uint64_t at, int bit)
      : behind_(behind),
        listener_(tcp::listen_at(tcp::find_address("127.0.0.1"), {})),
        which_(which),
        at_(at),
        bit_(bit),
        thread_([this] { run(); }) {}
  ~Meddler() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] std::string address() const { return tcp::local_address(listener_).text(); }
  [[nodiscard]] bool has_meddled() const { return meddled_; }

 private:
  struct Pair {
    tcp::Socket outside, inside;
    std::uint64_t passed = 0;  // bytes to the inside
    bool open = true;
  };

  void run() {
    std::vector<Pair> pairs;
    while (!stop_) {
      std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
      for (const auto& pair : pairs)
        for (const auto* socket : {&pair.outside, &pair.inside})
          entries.push_back({pair.open ? socket->get() : -1, POLLIN, 0});
      ::poll(entries.data(), entries.size(), 20);
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (entries[1 + 2 * i].revents != 0) pass(pairs[i], true, i == which_);
        if (entries[2 + 2 * i].revents != 0) pass(pairs[i], false, false);
      }
      if (entries[0].revents == 0) continue;
      pairs.push_back(
          {tcp::Socket(::accept(listener_.get(), nullptr, nullptr)), tcp::connect_to(behind_, {})});
    }
  }

  void pass(Pair& pair, bool inward, bool meddles) {
    std::byte buffer[65536];
    const auto& from = inward ? pair.outside : pair.inside;
    const auto& to = inward ? pair.inside : pair.outside;
    const auto got = ::recv(from.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got <= 0) {
      pair.open = false;
      pair.inside = tcp::Socket();
      pair.outside = tcp::Socket();
      return;
    }
    const auto bytes = static_cast<std::size_t>(got);
    if (meddles && at_ >= pair.passed && at_ < pair.passed + bytes) {
      buffer[at_ - pair.passed] ^= std::byte{1} << bit_;
      meddled_ = true;
    }
    if (inward) pair.passed += bytes;
    for (std::size_t done = 0; done < bytes;) {
      const auto sent = ::send(to.get(), buffer + done, bytes - done, MSG_NOSIGNAL);
      if (sent > 0) done += static_cast<std::size_t>(sent);
      if (sent < 0 && errno != EAGAIN) return;
      pollfd entry{to.get(), POLLOUT, 0};
      if (sent < 0) ::poll(&entry, 1, 100);
    }
  }

  tcp::Address behind_;
  tcp::Socket listener_;
  std::size_t which_;
  std::uint64_t at_;
  int bit_;
  std::atomic<bool> stop_ = false, meddled_ = false;
  std::thread thread_;
};

/// Sends rank 1 to the meddler instead of rank 0.
class DetourStore final : public Store {
 public:
  DetourStore(std::shared_ptr<Store> inner, std::size_t which, std::uint64_t at, int bit)
      : inner_(std::move(inner)), which_(which), at_(at), bit_(bit) {}
  void set(std::string_view key, std::string_view value) override { inner_->set(key, value); }
  std::string get(std::string_view key, Deadline deadline) override {
    auto card = tcp::read_card(inner_->get(key, deadline));
    meddler_ = std::make_unique<Meddler>(card.address, which_, at_, bit_);
    card.address = tcp::parse_address(meddler_->address());
    return tcp::write_card(card);
  }
  [[nodiscard]] bool has_meddled() const { return meddler_ && meddler_->has_meddled(); }

 private:
  std::shared_ptr<Store> inner_;
  std::size_t which_;
  std::uint64_t at_;
  int bit_;
  std::unique_ptr<Meddler> meddler_;
};

struct Outcome {
  std::string error;
  bool wrong = false;
};

// Two ranks add vectors until something breaks, or 20 times.
Outcome live(const TcpJoin& join) {
  Outcome outcome;
  try {
    Communicator communicator(join_tcp(join, Clock::now() + 5s), {.timeout = 5s});
    std::vector<float> data(50'000);
    for (int i = 0; i < 20; ++i) {
      std::fill(data.begin(), data.end(), static_cast<float>(i));
      communicator.allreduce(std::span(data));
      for (const auto value : data) outcome.wrong |= value != static_cast<float>(2 * i);
    }
    communicator.barrier();
  } catch (const Error& error) {
    outcome.error = error.what();
  }
  return outcome;
}

TEST(Damage, of_any_bit_on_a_data_connection_is_noticed_and_adds_nothing_wrong) {
  std::mt19937_64 random(42);
  const int trials = std::getenv("SINEW_FULL") != nullptr ? 300 : 25;
  int noticed = 0;
  for (int trial = 0; trial < trials; ++trial) {
    constexpr std::uint64_t kHandshake = 200;  // more than rank 1 says in it
    const auto at = kHandshake + random() % (trial % 3 == 0 ? 1000 : 3'000'000);
    const auto store = std::make_shared<test::SharedStore>();
    TcpJoin first;
    first.store = store;
    first.size = 2;
    auto second = first;
    const auto detour = std::make_shared<DetourStore>(store, 1, at, static_cast<int>(random() % 8));
    second.rank = 1;
    second.store = detour;
    Outcome outcomes[2];
    std::thread other([&] { outcomes[1] = live(second); });
    outcomes[0] = live(first);
    other.join();
    for (const auto& outcome : outcomes) {
      ASSERT_FALSE(outcome.wrong) << "byte " << at;
      ASSERT_EQ(outcome.error.empty(), !detour->has_meddled())
          << "byte " << at << ": " << outcome.error;
    }
    noticed += detour->has_meddled() ? 1 : 0;
  }
  EXPECT_GT(noticed, trials / 2);
}

}  // namespace
}  // namespace sinew
