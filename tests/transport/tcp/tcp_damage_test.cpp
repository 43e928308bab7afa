// A connection that changes what it carries: an error on every rank, never a wrong sum.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include <sinew/communicator.hpp>

#include "support/meddler.hpp"
#include "support/shared_store.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

struct Outcome {
  std::string error;
  bool wrong = false;
};

// Two ranks add vectors until something breaks, or 20 times.
Outcome live(const TcpJoin& join, float value) {
  Outcome outcome;
  try {
    Communicator communicator(join_tcp(join, Clock::now() + 5s), {.timeout = 5s});
    std::vector<float> data(50'000);
    for (int i = 0; i < 20; ++i) {
      std::fill(data.begin(), data.end(), value);
      communicator.allreduce(std::span(data));
      for (const auto sum : data) outcome.wrong |= sum != 2 * value;
    }
    communicator.barrier();
  } catch (const Error& error) {
    outcome.error = error.what();
  }
  return outcome;
}

/// Rank 1 reaches rank 0 only through somebody who meddles.
struct Trial {
  Outcome outcomes[2];
  bool meddled = false, overheard = false;

  Trial(bool tls, const test::Flip& flip) {
    constexpr float kValue = 1234567;
    const auto store = std::make_shared<test::SharedStore>();
    TcpJoin first;
    first.store = store;
    first.size = 2;
    first.options.tls = tls;
    auto second = first;
    std::string secret;
    for (int i = 0; i < 8; ++i)
      secret.append(reinterpret_cast<const char*>(&kValue), sizeof kValue);
    const auto detour = std::make_shared<test::DetourStore>(store, flip, secret);
    second.rank = 1;
    second.store = detour;
    std::thread other([&] { outcomes[1] = live(second, kValue); });
    outcomes[0] = live(first, kValue);
    other.join();
    meddled = detour->has_meddled();
    overheard = detour->has_overheard();
  }
};

// More than rank 1 says before the first frame.
std::uint64_t handshake_bytes(bool tls) { return tls ? 1000 : 200; }

class Damage : public testing::TestWithParam<bool> {};

TEST_P(Damage, of_any_bit_on_a_data_connection_is_noticed_and_adds_nothing_wrong) {
  std::mt19937_64 random(42);
  const int trials = std::getenv("SINEW_FULL") != nullptr ? 300 : 25;
  int noticed = 0;
  for (int i = 0; i < trials; ++i) {
    const auto at = handshake_bytes(GetParam()) + random() % (i % 3 == 0 ? 1000 : 3'000'000);
    const Trial trial(GetParam(), {1, at, static_cast<int>(random() % 8)});
    for (const auto& outcome : trial.outcomes) {
      ASSERT_FALSE(outcome.wrong) << "byte " << at;
      ASSERT_EQ(outcome.error.empty(), !trial.meddled) << "byte " << at << ": " << outcome.error;
    }
    noticed += trial.meddled ? 1 : 0;
  }
  EXPECT_GT(noticed, trials / 2);
}

INSTANTIATE_TEST_SUITE_P(TcpAndTls, Damage, testing::Bool());

TEST(Tls, a_flipped_bit_ends_the_session_and_both_ranks_tell_which) {
  const Trial trial(true, {1, 100'000, 3});
  ASSERT_TRUE(trial.meddled);
  for (const auto& outcome : trial.outcomes) {
    EXPECT_NE(outcome.error.find("rank 0 gives up its connection to rank 1"), std::string::npos)
        << outcome.error;
    EXPECT_NE(outcome.error.find("bad record mac"), std::string::npos) << outcome.error;
  }
}

TEST(Tls, hides_from_a_listener_what_is_plain_without_it) {
  const Trial plain(false, {}), sealed(true, {});
  for (const auto* trial : {&plain, &sealed})
    for (const auto& outcome : trial->outcomes) EXPECT_EQ(outcome.error, "");
  EXPECT_TRUE(plain.overheard);
  EXPECT_FALSE(sealed.overheard);
}

}  // namespace
}  // namespace sinew
