// Decorators change when things happen, or that they fail; never what arrives.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "support/exact_data.hpp"
#include "support/local_ranks.hpp"
#include "transport/delayed.hpp"
#include "transport/faulty.hpp"
#include "transport/local/local.hpp"
#include "transport/traced.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

// The sweep without what needs shared memory, and fewer sizes.
std::vector<test::Trial> trials_for(int size) {
  std::vector<test::Trial> trials;
  for (const auto& trial : test::sweep(size))
    if (trial.algorithm->fits({0, size, 0, 1, {}}, {}) && trial.op == ReduceOp::sum &&
        trial.dtype == DType::f32)
      trials.push_back(trial);
  return trials;
}

void expect_exact(int size, const test::LocalSetup& setup) {
  test::Complaints wrong(size);
  test::on_local(
      size,
      [&](Communicator& c) {
        for (const auto& trial : trials_for(size)) wrong.add(c.rank(), test::attempt(c, trial));
      },
      setup);
  EXPECT_EQ(wrong.text(), "");
}

TEST(Delayed, every_algorithm_without_shared_memory_stays_exact) {
  test::LocalSetup setup;
  setup.decorate = [](std::unique_ptr<Transport> inner) {
    return std::make_unique<DelayedTransport>(std::move(inner), Delay{5us, 2e9});
  };
  expect_exact(3, setup);
}

// A clock that stands until it is moved.
struct Standing {
  std::atomic<std::int64_t> ns{1'000'000};
  Clock::time_point operator()() const {
    return Clock::time_point(std::chrono::nanoseconds(ns.load()));
  }
};

// Ranks over one hub, with one clock that stands. Lanes hold what the tests have on its way.
struct Group {
  Standing clock;
  std::shared_ptr<LocalHub> hub;
  std::vector<std::unique_ptr<DelayedTransport>> ranks;

  Group(int size, const Delay& delay) : hub(LocalHub::make(size, {.lane_slot_bytes = 1 << 18})) {
    for (int rank = 0; rank < size; ++rank)
      ranks.push_back(
          std::make_unique<DelayedTransport>(hub->join(rank), delay, [this] { return clock(); }));
  }
};

constexpr double kGigabit = 125e6;  // bytes a second

TEST(Delayed, a_message_takes_latency_and_its_time_on_the_link) {
  Group group(2, {100us, 1e9});
  const std::vector<std::byte> data(50'000);  // 50 us at 1 GB/s
  std::vector<std::byte> into(50'000);
  Transfer first{1, 0, {}, 0, 0}, second{1, 0, {}, 0, 0}, in{0, 0, {}, 0, 0}, next{0, 0, {}, 0, 0};
  EXPECT_EQ(group.ranks[0]->send(first, data), Progress::done);
  EXPECT_EQ(group.ranks[0]->send(second, data), Progress::done);
  EXPECT_EQ(group.ranks[1]->recv(in, into), Progress::pending);
  group.clock.ns += 149'999;
  EXPECT_EQ(group.ranks[1]->recv(in, into), Progress::pending);
  group.clock.ns += 1;
  EXPECT_EQ(group.ranks[1]->recv(in, into), Progress::done);
  // The second was on its way meanwhile: it waited for the link, not for the latency.
  EXPECT_EQ(group.ranks[1]->recv(next, into), Progress::pending);
  group.clock.ns += 49'999;
  EXPECT_EQ(group.ranks[1]->recv(next, into), Progress::pending);
  group.clock.ns += 1;
  EXPECT_EQ(group.ranks[1]->recv(next, into), Progress::done);
}

TEST(Delayed, no_size_arrives_before_its_bytes_have_been_carried) {
  for (const std::size_t bytes : {0U, 1U, 1000U, 100'000U}) {
    Group group(2, {1ms, kGigabit});
    const std::vector<std::byte> data(bytes);
    std::vector<std::byte> into(bytes);
    Transfer out{1, 0, {}, 0, 0}, in{0, 0, {}, 0, 0};
    EXPECT_EQ(group.ranks[0]->send(out, data), Progress::done);
    const auto takes = 1'000'000 + static_cast<std::int64_t>(bytes) * 8;  // 8 ns a byte
    group.clock.ns += takes - 1;
    EXPECT_EQ(group.ranks[1]->recv(in, into), Progress::pending) << bytes;
    group.clock.ns += 1;
    EXPECT_EQ(group.ranks[1]->recv(in, into), Progress::done) << bytes;
  }
}

TEST(Delayed, ranks_of_a_node_share_its_link_and_inside_it_nothing_is_delayed) {
  Group group(4, {1ms, kGigabit, {0, 0, 1, 1}, std::make_shared<LinkTimes>(2)});
  const std::vector<std::byte> data(125'000);  // 1 ms
  std::vector<std::byte> into(125'000);
  Transfer near{1, 0, {}, 0, 0}, near_in{0, 0, {}, 0, 0};
  EXPECT_EQ(group.ranks[0]->send(near, data), Progress::done);
  EXPECT_EQ(group.ranks[1]->recv(near_in, into), Progress::done);
  Transfer a{2, 0, {}, 0, 0}, b{3, 0, {}, 0, 0}, back{0, 0, {}, 0, 0};
  Transfer from_a{0, 0, {}, 0, 0}, from_b{1, 0, {}, 0, 0}, returned{2, 0, {}, 0, 0};
  EXPECT_EQ(group.ranks[0]->send(a, data), Progress::done);
  EXPECT_EQ(group.ranks[1]->send(b, data), Progress::done);
  EXPECT_EQ(group.ranks[2]->send(back, data), Progress::done);  // the other way is free
  group.clock.ns += 2'000'000;
  EXPECT_EQ(group.ranks[2]->recv(from_a, into), Progress::done);
  EXPECT_EQ(group.ranks[0]->recv(returned, into), Progress::done);
  EXPECT_EQ(group.ranks[3]->recv(from_b, into), Progress::pending);  // was second in line
  group.clock.ns += 1'000'000;
  EXPECT_EQ(group.ranks[3]->recv(from_b, into), Progress::done);
}

TEST(Delayed, two_senders_share_the_receiving_link_too) {
  Group group(3, {0us, kGigabit, {0, 1, 2}, std::make_shared<LinkTimes>(3)});
  const std::vector<std::byte> data(125'000);
  std::vector<std::byte> into(125'000);
  Transfer a{2, 0, {}, 0, 0}, b{2, 0, {}, 0, 0}, from_a{0, 0, {}, 0, 0}, from_b{1, 0, {}, 0, 0};
  EXPECT_EQ(group.ranks[0]->send(a, data), Progress::done);
  EXPECT_EQ(group.ranks[1]->send(b, data), Progress::done);
  group.clock.ns += 1'000'000;
  EXPECT_EQ(group.ranks[2]->recv(from_a, into), Progress::done);
  EXPECT_EQ(group.ranks[2]->recv(from_b, into), Progress::pending);
  group.clock.ns += 1'000'000;
  EXPECT_EQ(group.ranks[2]->recv(from_b, into), Progress::done);
}

// Nodes, so that memory is shared in them and only in them.
test::LocalSetup on_nodes(const Delay& delay) {
  test::LocalSetup setup;
  setup.decorate = [delay](std::unique_ptr<Transport> inner) {
    return std::make_unique<DelayedTransport>(std::move(inner), delay);
  };
  return setup;
}

TEST(Delayed, every_algorithm_that_fits_its_nodes_stays_exact) {
  const std::vector<int> nodes{0, 0, 1, 1, 1};
  std::vector<test::Trial> trials;
  for (const auto& trial : test::sweep(5, nodes))
    if (trial.algorithm->fits({0, 5, 0, 1, nodes}, {.board = true}) && trial.op == ReduceOp::sum &&
        trial.dtype == DType::f32)
      trials.push_back(trial);
  EXPECT_TRUE(std::any_of(trials.begin(), trials.end(),
                          [](const auto& t) { return t.algorithm->name == "two_level"; }));
  test::Complaints wrong(5);
  test::on_local(
      5,
      [&](Communicator& c) {
        for (const auto& trial : trials) wrong.add(c.rank(), test::attempt(c, trial));
      },
      on_nodes({5us, 2e9, nodes, std::make_shared<LinkTimes>(2)}));
  EXPECT_EQ(wrong.text(), "");
}

TEST(Delayed, slow_links_between_nodes_make_levels_the_choice) {
  const std::vector<int> nodes{0, 0, 0, 0, 1, 1, 1, 1};
  test::on_local(
      8,
      [](Communicator& c) {
        for (const auto& [count, best] :
             {std::pair{2U, "two_level"}, {10'000U, "two_level"}, {1'000'000U, "grid"}}) {
          const auto candidates = c.explain({.collective = Collective::allreduce, .count = count});
          EXPECT_EQ(candidates.front().algorithm, best) << count;
        }
        for (const auto& candidate : c.explain({.collective = Collective::allreduce, .count = 10}))
          if (candidate.algorithm == "flat" || candidate.algorithm == "direct") {
            EXPECT_EQ(candidate.refused, "does not fit these ranks");
          }
      },
      on_nodes({1ms, kGigabit, nodes, std::make_shared<LinkTimes>(2)}));
}

TEST(Delayed, inside_a_node_a_split_group_has_its_shared_memory) {
  const std::vector<int> nodes{0, 0, 1, 1};
  test::on_local(
      4,
      [](Communicator& c) {
        auto half = c.split(c.rank() / 2);
        std::vector<float> data(1000, 1);
        half.allreduce(std::span(data), ReduceOp::sum, {.algorithm = "direct"});
        EXPECT_EQ(data[999], 2);
        auto across = c.split(c.rank() % 2);
        EXPECT_THROW(across.allreduce(std::span(data), ReduceOp::sum, {.algorithm = "direct"}),
                     Error);
        across.allreduce(std::span(data));
        EXPECT_EQ(data[0], 4);
      },
      on_nodes({10us, 1e9, nodes, std::make_shared<LinkTimes>(2)}));
}

TEST(Delayed, hides_shared_memory) {
  DelayedTransport transport(LocalHub::make(1)->join(0), {});
  EXPECT_EQ(transport.board(), nullptr);
  EXPECT_EQ(transport.arena(), nullptr);
  EXPECT_FALSE(transport.capabilities().board);
  Communicator hidden(std::make_unique<DelayedTransport>(LocalHub::make(1)->join(0), Delay{}));
  EXPECT_THROW(hidden.alloc_shared(100), Error);
}

TEST(Faulty, stalls_in_any_order_change_nothing) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    test::LocalSetup setup;
    setup.decorate = [=](std::unique_ptr<Transport> inner) {
      return std::make_unique<FaultyTransport>(std::move(inner),
                                               Faults{.seed = seed, .stall_chance = 0.4});
    };
    expect_exact(4, setup);
  }
}

TEST(Faulty, a_fault_is_every_ranks_error_and_names_the_right_peer) {
  for (const std::uint64_t at : {1U, 2U, 5U, 9U})
    for (const auto algorithm : {"ring", "halving_doubling", "linear"}) {
      test::LocalSetup setup;
      setup.options.timeout = 20s;
      setup.decorate = [=](std::unique_ptr<Transport> inner) -> std::unique_ptr<Transport> {
        const bool strikes = inner->rank() == 1;
        return std::make_unique<FaultyTransport>(
            std::move(inner), Faults{.stall_chance = 0.2,
                                     .fail_at = strikes ? at : 0,
                                     .failure = {Errc::system, 2, "the cable to rank 2 is cut"}});
      };
      const auto errors = test::try_local(
          3,
          [&](Communicator& c) {
            std::vector<float> data(1000);
            for (int i = 0; i < 20; ++i)
              c.allreduce(std::span(data), ReduceOp::sum, {.algorithm = algorithm});
          },
          setup);
      for (const auto& error : errors) {
        ASSERT_TRUE(error.has_value()) << algorithm << " " << at;
        EXPECT_EQ(error->code(), Errc::system);
        EXPECT_EQ(error->context().peer, 2);
        EXPECT_NE(std::string(error->what()).find("the cable to rank 2 is cut"), std::string::npos)
            << error->what();
        EXPECT_NE(std::string(error->what()).find("allreduce of 1000 f32 sum"), std::string::npos)
            << error->what();
      }
    }
}

TEST(Faulty, without_a_name_the_peer_of_the_transfer_is_blamed) {
  const auto hub = LocalHub::make(3);
  FaultyTransport transport(hub->join(0), {.fail_at = 1});
  Transfer transfer{2, 0, {}, 0, 0};
  const std::vector<std::byte> data(8);
  EXPECT_EQ(transport.send(transfer, data), Progress::failed);
  EXPECT_EQ(transport.failure().peer, 2);
  EXPECT_EQ(transport.failure().code, Errc::peer_lost);
}

struct Collected final : Observer {
  std::mutex mutex;
  std::vector<Event> events;
  void on_event(const Event& event) noexcept override {
    const std::scoped_lock lock(mutex);
    events.push_back(event);
  }
};

TEST(Traced, every_transfer_is_an_event_and_both_sides_agree_on_the_bytes) {
  Collected seen;
  test::LocalSetup setup;
  setup.decorate = [&](std::unique_ptr<Transport> inner) {
    return std::make_unique<TracedTransport>(std::move(inner), seen);
  };
  test::on_local(
      4,
      [](Communicator& c) {
        std::vector<float> data(4000, 1);
        c.allreduce(std::span(data), ReduceOp::sum, {.algorithm = "ring"});
        EXPECT_EQ(data[3999], 4.0F);
      },
      setup);
  // A ring of 4: six rounds, in each of which every rank sends and receives a quarter.
  ASSERT_EQ(seen.events.size(), 2U * 4 * 6);
  std::uint64_t sent = 0, received = 0;
  for (const auto& event : seen.events) {
    (event.kind == EventKind::send ? sent : received) += event.bytes;
    EXPECT_EQ(event.sequence, 1U);
    EXPECT_GE(event.peer, 0);
    EXPECT_GT(event.begin_ns, 0U);
    EXPECT_GE(event.end_ns, event.begin_ns);
  }
  EXPECT_EQ(sent, 2U * 3 * 16000);
  EXPECT_EQ(sent, received);
}

TEST(Decorators, also_cover_groups_that_are_split_off) {
  Collected seen;
  test::LocalSetup setup;
  setup.decorate = [&](std::unique_ptr<Transport> inner) -> std::unique_ptr<Transport> {
    return std::make_unique<FaultyTransport>(
        std::make_unique<TracedTransport>(std::move(inner), seen), Faults{.stall_chance = 0.3});
  };
  test::on_local(
      4,
      [](Communicator& c) {
        auto half = c.split(c.rank() % 2);
        EXPECT_EQ(half.transport(), "faulty");
        std::vector<std::int32_t> data(100, 1);
        half.allreduce(std::span(data));
        EXPECT_EQ(data[99], 2);
      },
      setup);
  EXPECT_GT(seen.events.size(), 8U);
}

}  // namespace
}  // namespace sinew
