// Point-to-point: matched by tag, in order, and never silently wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
using Numbers = std::vector<std::int32_t>;

Numbers numbers(std::size_t count, int salt) {
  Numbers data(count);
  std::iota(data.begin(), data.end(), salt * 1000);
  return data;
}
std::span<const std::int32_t> view(const Numbers& data) { return data; }

/// Ranks as threads, over shared memory and over sockets.
class Messages : public testing::TestWithParam<test::Medium> {
 protected:
  static test::LocalSetup setup() {
    test::LocalSetup setup;
    setup.tcp = GetParam() == test::Medium::tcp;
    return setup;
  }
  static void on_ranks(int size, const std::function<void(Communicator&)>& body) {
    test::on_local(size, body, setup());
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Messages, testing::ValuesIn(test::kMedia),
                         [](const auto& medium) { return std::string(name(medium.param)); });

void tags_out_of_order(Communicator& c) {
  constexpr std::uint32_t kTags = 5;
  if (c.rank() == 0) {
    std::vector<Numbers> out;
    std::vector<Request> requests;
    for (std::uint32_t tag = 0; tag < kTags; ++tag)
      out.push_back(numbers(100 + tag * 20000, static_cast<int>(tag)));
    for (std::uint32_t tag = 0; tag < kTags; ++tag)
      requests.push_back(c.isend(view(out[tag]), 1, tag));
    c.wait_all(requests);
  } else if (c.rank() == 1) {
    for (const std::uint32_t tag : {3U, 0U, 4U, 2U, 1U}) {
      Numbers in(100 + tag * 20000);
      c.recv(std::span(in), 0, tag);
      ASSERT_EQ(in, numbers(in.size(), static_cast<int>(tag)));
    }
  }
  c.barrier();
}

TEST_P(Messages, are_matched_by_tag_whatever_order_they_are_asked_for) {
  on_ranks(2, tags_out_of_order);
  const auto stories = test::fork_ranks(
      3,
      [](const test::Seat& seat) {
        auto communicator = seat.join();
        tags_out_of_order(communicator);
      },
      GetParam());
  EXPECT_TRUE(stories.empty()) << stories.front();
}

TEST_P(Messages, of_one_tag_arrive_in_order) {
  on_ranks(2, [](Communicator& c) {
    for (int i = 0; i < 200; ++i) {
      const auto data = numbers(1 + static_cast<std::size_t>(i), i);
      Numbers in(data.size());
      if (c.rank() == 0) c.send(view(data), 1, 9);
      if (c.rank() == 0) continue;
      c.recv(std::span(in), 0, 9);
      ASSERT_EQ(in, data);
    }
    c.barrier();
  });
}

TEST_P(Messages, to_oneself_work_in_both_orders) {
  on_ranks(2, [](Communicator& c) {
    const auto data = numbers(1000, 3);
    Numbers early(1000), late(1000);
    const auto posted = c.irecv(std::span(early), c.rank(), 1);
    c.send(view(data), c.rank(), 1);
    c.wait(posted);
    c.send(view(data), c.rank(), 2);
    c.recv(std::span(late), c.rank(), 2);
    EXPECT_EQ(early, data);
    EXPECT_EQ(late, data);
  });
}

TEST_P(Messages, may_be_empty_and_still_keep_order) {
  on_ranks(2, [](Communicator& c) {
    const Numbers nothing, one{42};
    Numbers in(1);
    if (c.rank() == 0) {
      c.send(view(nothing), 1, 1);
      c.send(view(one), 1, 1);
      c.send(view(nothing), 1, 2);
    } else {
      c.recv(std::span<std::int32_t>(), 0, 2);
      c.recv(std::span<std::int32_t>(), 0, 1);
      c.recv(std::span(in), 0, 1);
      EXPECT_EQ(in, one);
    }
    c.barrier();
  });
}

void large_both_ways(Communicator& c) {
  constexpr std::size_t kCount = std::size_t{2} << 20;  // 8 MiB
  const int other = 1 - c.rank();
  const auto out = numbers(kCount, c.rank());
  Numbers in(kCount);
  c.sendrecv(view(out), other, std::span(in), other, 5);
  ASSERT_EQ(in, numbers(kCount, other));
  // Both send first and ask later: whoever waits keeps taking what arrives.
  const auto going = c.isend(view(out), other, 6);
  c.wait(going);
  c.recv(std::span(in), other, 6);
  ASSERT_EQ(in, numbers(kCount, other));
}

TEST_P(Messages, of_8_mib_cross_both_ways_at_once) {
  on_ranks(2, large_both_ways);
  const auto stories = test::fork_ranks(
      2,
      [](const test::Seat& seat) {
        auto communicator = seat.join();
        large_both_ways(communicator);
      },
      GetParam());
  EXPECT_TRUE(stories.empty()) << stories.front();
}

TEST_P(Messages, travel_round_a_ring) {
  for (const int size : {1, 2, 3, 5}) {
    on_ranks(size, [&](Communicator& c) {
      Numbers travelling = numbers(5000, c.rank());
      for (int hop = 0; hop < size; ++hop) {
        Numbers in(5000);
        c.sendrecv(view(travelling), (c.rank() + 1) % size, std::span(in),
                   (c.rank() + size - 1) % size, 1);
        travelling.swap(in);
      }
      ASSERT_EQ(travelling, numbers(5000, c.rank()));
    });
  }
}

Request from_anyone(Communicator& c, Numbers& in, int& source, std::uint32_t tag) {
  return c.irecv_any(std::as_writable_bytes(std::span(in)), source, tag);
}

void tags_of_anyone(Communicator& c) {
  constexpr int kEach = 20;
  if (c.rank() != 0) {
    for (int i = 0; i < kEach; ++i) {
      const auto data = numbers(20000, c.rank() * 100 + i);
      c.send(view(data), 0, i % 2 == 0 ? 4U : 5U);
    }
    return c.barrier();
  }
  for (const std::uint32_t tag : {5U, 4U}) {
    std::vector<int> next(static_cast<std::size_t>(c.size()), tag == 4 ? 0 : 1);
    for (int i = 0; i < kEach / 2 * (c.size() - 1); ++i) {
      Numbers in(20000);
      int source = -1;
      c.wait(from_anyone(c, in, source, tag));
      ASSERT_TRUE(source > 0 && source < c.size()) << source;
      auto& number = next[static_cast<std::size_t>(source)];
      ASSERT_EQ(in, numbers(in.size(), source * 100 + number));
      number += 2;
    }
  }
  c.barrier();
}

TEST_P(Messages, of_anyone_are_matched_by_tag_and_those_of_one_rank_come_in_order) {
  for (const int size : {2, 3, 5}) on_ranks(size, tags_of_anyone);
}

TEST(MessagesBetweenHosts, of_anyone_come_over_memory_and_sockets_alike) {
  const auto stories = test::fork_ranks(
      4,
      [](const test::Seat& seat) {
        auto communicator = seat.join();
        tags_of_anyone(communicator);
      },
      test::Medium::routed);
  EXPECT_TRUE(stories.empty()) << stories.front();
}

TEST_P(Messages, of_anyone_that_came_first_are_taken_first_whoever_sent_them) {
  on_ranks(3, [](Communicator& c) {
    constexpr int kEach = 10;
    const Numbers end{0};
    for (const int sender : {2, 1}) {
      if (c.rank() == sender) {
        for (int i = 0; i < kEach; ++i) c.send(view(numbers(8, i)), 0, 5);
        c.send(view(end), 0, 9);
      }
      Numbers in(1);
      if (c.rank() == 0) c.recv(std::span(in), sender, 9);  // and with it all that was before
      c.barrier();
    }
    if (c.rank() != 0) return;
    for (int i = 0; i < 2 * kEach; ++i) {
      Numbers in(8);
      int source = -1;
      c.wait(from_anyone(c, in, source, 5));
      ASSERT_EQ(source, i < kEach ? 2 : 1);
      ASSERT_EQ(in, numbers(8, i % kEach));
    }
  });
}

TEST_P(Messages, go_to_the_receive_that_was_asked_for_first_named_or_not) {
  on_ranks(2, [](Communicator& c) {
    std::vector<Numbers> data, in(4, Numbers(30000));
    for (int i = 0; i < 4; ++i) data.push_back(numbers(30000, i));
    int first = -1, third = -1;
    std::vector<Request> requests;
    if (c.rank() == 1)
      requests = {from_anyone(c, in[0], first, 1), c.irecv(std::span(in[1]), 0, 1),
                  from_anyone(c, in[2], third, 1), c.irecv(std::span(in[3]), 0, 1)};
    c.barrier();
    if (c.rank() == 0)
      for (const auto& one : data) requests.push_back(c.isend(view(one), 1, 1));
    c.wait_all(requests);
    if (c.rank() == 0) return;
    EXPECT_EQ(in, data);
    EXPECT_EQ(first, 0);
    EXPECT_EQ(third, 0);
  });
}

TEST_P(Messages, of_anyone_may_be_ones_own) {
  on_ranks(1, [](Communicator& c) {
    const auto data = numbers(10, 3);
    Numbers early(10), late(10);
    int source = -1;
    const auto posted = from_anyone(c, early, source, 1);
    EXPECT_FALSE(c.test(posted));
    c.send(view(data), 0, 1);
    c.wait(posted);
    EXPECT_EQ(std::exchange(source, -1), 0);
    c.send(view(data), 0, 2);
    c.wait(from_anyone(c, late, source, 2));
    EXPECT_EQ(source, 0);
    EXPECT_EQ(early, data);
    EXPECT_EQ(late, data);
  });
}

TEST_P(Messages, of_another_length_are_an_error_that_names_both_sizes_and_stays) {
  for (const bool posted_first : {false, true}) {
    const auto errors = test::try_local(
        2,
        [&](Communicator& c) {
          if (c.rank() == 0) {
            if (posted_first) c.barrier();
            const auto data = numbers(100, 0);
            const auto sent = c.isend(view(data), 1, 7);
            if (!posted_first) c.barrier();
            c.wait(sent);
            c.barrier();  // ends in an error as well: rank 1 is in no state to come
            return;
          }
          Numbers in(90);
          Request request;
          if (posted_first) request = c.irecv(std::span(in), 0, 7);
          c.barrier();
          std::string text;
          try {
            if (!posted_first) request = c.irecv(std::span(in), 0, 7);
            c.wait(request);
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::mismatch);
            text = error.what();
          }
          EXPECT_NE(text.find("360 bytes"), std::string::npos) << text;
          EXPECT_NE(text.find("400"), std::string::npos) << text;
          EXPECT_NE(text.find("tag 7"), std::string::npos) << text;
          try {
            c.barrier();
            ADD_FAILURE() << "the communicator was not poisoned";
          } catch (const Error& error) {
            EXPECT_EQ(text, error.what());
            throw;
          }
        },
        setup());
    ASSERT_TRUE(errors[0] && errors[1]);
    EXPECT_EQ(errors[0]->code(), Errc::mismatch);
  }
}

TEST_P(Messages, that_never_come_end_at_the_deadline_and_name_peer_and_tag) {
  auto impatient = setup();
  impatient.options.timeout = 100ms;
  const auto errors = test::try_local(
      2,
      [](Communicator& c) {
        Numbers in(16);
        if (c.rank() == 0) c.recv(std::span(in), 1, 77);
        if (c.rank() == 1) c.recv(std::span(in), 0, 78);
      },
      impatient);
  ASSERT_TRUE(errors[0] && errors[1]);
  for (const auto& error : errors) EXPECT_EQ(error->code(), Errc::timeout);
  const std::string both = std::string(errors[0]->what()) + errors[1]->what();
  EXPECT_TRUE(both.find("from rank 1 with tag 77") != std::string::npos ||
              both.find("from rank 0 with tag 78") != std::string::npos)
      << both;
}

TEST_P(Messages, of_nobody_end_at_the_deadline_and_name_the_tag) {
  auto impatient = setup();
  impatient.options.timeout = 100ms;
  const auto errors = test::try_local(
      2,
      [](Communicator& c) {
        Numbers in(16);
        int source = -1;
        c.wait(from_anyone(c, in, source, 77));
      },
      impatient);
  ASSERT_TRUE(errors[0] && errors[1]);
  for (const auto& error : errors) EXPECT_EQ(error->code(), Errc::timeout);
  const std::string both = std::string(errors[0]->what()) + errors[1]->what();
  EXPECT_NE(both.find("receiving 64 bytes from any rank with tag 77"), std::string::npos) << both;
}

TEST_P(Messages, to_ranks_that_do_not_exist_are_refused_and_nothing_is_lost) {
  on_ranks(2, [](Communicator& c) {
    const auto data = numbers(4, 0);
    for (const int nobody : {-1, 2, 99}) {
      try {
        c.isend(view(data), nobody, 0);
        ADD_FAILURE();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::invalid_argument);
        EXPECT_NE(
            std::string(error.what()).find(fmt::format("rank {} does not exist among 2", nobody)),
            std::string::npos);
      }
    }
    c.barrier();
  });
}

}  // namespace
}  // namespace sinew
