// Messages with ranks that have left: what was sent arrives, what never will is an error at once.
// The deadline is far away in all of these: an error that waited for it would be a timeout.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>

#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"
#include "transport/delayed.hpp"
#include "transport/faulty.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
using Numbers = std::vector<std::int32_t>;

Numbers numbers(std::size_t count) {
  Numbers data(count);
  std::iota(data.begin(), data.end(), 7);
  return data;
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return fmt::format("{} {}: {}", name(error.code()), error.context().peer, error.what());
  }
  return "no error";
}

// Rank 1 sends three messages and leaves; rank 0 takes them out of order and asks for a fourth.
void take_what_came_and_ask_for_more(Communicator& c,
                                     const std::function<void(std::string)>& tell) {
  const auto data = numbers(5000);
  const std::span<const std::int32_t> view(data);
  if (c.rank() == 1) {
    for (const std::uint32_t tag : {4U, 5U, 6U}) c.send(view, 0, tag);
    return;
  }
  if (c.rank() != 0) return;
  for (const std::uint32_t tag : {6U, 4U, 5U}) {
    Numbers in(data.size());
    c.recv(std::span(in), 1, tag);
    if (in != data) tell("wrong data");
  }
  Numbers more(10);
  const auto why = error_of([&] { c.recv(std::span(more), 1, 9); });
  if (why !=
      "peer lost 1: rank 0: receiving 40 bytes from rank 1 with tag 9 cannot finish: rank 1 "
      "has left")
    tell(why);
  const auto again = error_of([&] { c.barrier(); });
  if (again != why) tell(again);
}

TEST(Leaving, what_was_sent_before_arrives_and_what_was_not_is_an_error_that_names_peer_and_tag) {
  test::on_local(2, [](Communicator& c) {
    take_what_came_and_ask_for_more(c, [](const std::string& what) { ADD_FAILURE() << what; });
  });
  const auto told = test::fork_ranks(3, [](const test::Seat& seat) {
    auto communicator = seat.join("leaving", {.timeout = 60s});
    take_what_came_and_ask_for_more(communicator,
                                    [&](const std::string& what) { seat.tell(what); });
  });
  EXPECT_TRUE(told.empty()) << told.front();
}

TEST(Leaving, messages_that_are_delayed_or_stalled_arrive_all_the_same) {
  using Decorate = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>;
  const Decorate delay = [](std::unique_ptr<Transport> inner) {
    return std::make_unique<DelayedTransport>(std::move(inner), Delay{20ms, 0});
  };
  const Decorate stall = [](std::unique_ptr<Transport> inner) {
    return std::make_unique<FaultyTransport>(std::move(inner), Faults{.stall_chance = 0.9});
  };
  for (const auto& decorate : {delay, stall}) {
    test::LocalSetup setup;
    setup.decorate = decorate;
    test::on_local(
        2,
        [](Communicator& c) {
          take_what_came_and_ask_for_more(c,
                                          [](const std::string& what) { ADD_FAILURE() << what; });
        },
        setup);
  }
}

TEST(Leaving, a_send_that_nobody_will_take_is_an_error) {
  test::on_local(2, [](Communicator& c) {
    if (c.rank() == 1) return;
    const auto data = numbers(std::size_t{2} << 20);  // more than can be on its way
    const auto why = error_of([&] { c.send(std::span<const std::int32_t>(data), 1, 3); });
    EXPECT_EQ(why,
              "peer lost 1: rank 0: sending 8388608 bytes to rank 1 with tag 3 cannot finish: "
              "rank 1 has left");
  });
}

TEST(Leaving, is_noticed_by_whoever_only_tests) {
  test::on_local(2, [](Communicator& c) {
    if (c.rank() == 1) return;
    Numbers in(4);
    const auto request = c.irecv(std::span(in), 1, 8);
    const auto why = error_of([&] {
      while (!c.test(request)) {
      }
    });
    EXPECT_NE(why.find("from rank 1 with tag 8 cannot finish"), std::string::npos) << why;
  });
}

// Rank 1 has left long before rank 2 sends, and rank 2 after it has.
void take_of_anyone_until_all_have_left(Communicator& c) {
  const auto data = numbers(10);
  const std::span<const std::int32_t> view(data);
  if (c.rank() == 1) return;
  if (c.rank() == 2) {
    std::this_thread::sleep_for(50ms);
    return c.send(view, 0, 4);
  }
  const auto take = [&] {
    Numbers in(data.size());
    int source = -1;
    const auto request = c.irecv_any(std::as_writable_bytes(std::span(in)), source, 4);
    while (!c.test(request)) {
    }
    EXPECT_EQ(in, data);
    return source;
  };
  EXPECT_EQ(take(), 2);
  EXPECT_EQ(error_of(take),
            "peer lost 2: rank 0: receiving 40 bytes from any rank with tag 4 cannot finish: "
            "all others have left");
}

TEST(Leaving, of_all_others_ends_a_receive_from_anyone_and_of_some_does_not) {
  test::LocalSetup setup;
  for (const bool tcp : {false, true}) {
    setup.tcp = tcp;
    test::on_local(3, take_of_anyone_until_all_have_left, setup);
  }
}

TEST(Leaving, after_a_failure_the_failure_is_what_others_hear_of) {
  for (int trial = 0; trial < 200; ++trial) {
    const auto errors = test::try_local(2, [](Communicator& c) {
      Numbers in(4);
      if (c.rank() == 1) {
        const auto data = numbers(3);
        c.send(std::span<const std::int32_t>(data), 1, 1);
        c.recv(std::span(in), 1, 1);  // not what was sent
      }
      c.recv(std::span(in), 1, 2);
    });
    ASSERT_TRUE(errors[0] && errors[1]);
    ASSERT_EQ(errors[0]->code(), Errc::mismatch) << errors[0]->what();
    ASSERT_EQ(errors[1]->code(), Errc::mismatch);
  }
}

TEST(Leaving, of_one_rank_does_not_trouble_messages_with_another) {
  test::on_local(3, [](Communicator& c) {
    const auto data = numbers(100'000);
    if (c.rank() == 2) return;
    for (int i = 0; i < 20; ++i) {
      Numbers in(data.size());
      c.sendrecv(std::span<const std::int32_t>(data), 1 - c.rank(), std::span(in), 1 - c.rank(), 1);
      ASSERT_EQ(in, data);
    }
  });
}

}  // namespace
}  // namespace sinew
