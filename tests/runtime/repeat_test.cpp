// Calls that repeat post before anything else and take a shorter way: what they post must be what
// the call would have posted, whatever comes between two of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"
#include "support/mismatches.hpp"

namespace sinew {
namespace {

// In the flag line, in short slots, in windows that wander.
constexpr std::size_t kCounts[] = {1, 3, 50, 500, 3000};

std::int64_t sum_over_ranks(int size, std::int64_t base) {
  return base * size + size * (size - 1) / 2;
}

// The same call again and again on changing data, with something else now and then.
std::string repeat(Communicator& c, int calls, std::size_t count) {
  const int size = c.size(), me = c.rank();
  std::vector<std::int64_t> data(count), other(2000);
  for (int call = 0; call < calls; ++call) {
    const std::int64_t base = 1000 * call + 7;
    std::iota(data.begin(), data.end(), base);
    for (auto& value : data) value += me;
    c.allreduce(std::span(data), ReduceOp::sum, {.tag = call % 10 == 9 ? 5U : 4U});
    for (std::size_t i = 0; i < data.size(); ++i)
      if (data[i] != sum_over_ranks(size, base + static_cast<std::int64_t>(i)))
        return fmt::format("rank {} of {}: call {}: element {} is {}", me, size, call, i, data[i]);
    if (call % 7 == 0) c.barrier();
    if (call % 11 == 0) {  // the same again, not blocking
      std::fill(data.begin(), data.end(), me);
      const auto request = c.start({.collective = Collective::allreduce,
                                    .dtype = DType::i64,
                                    .input = data.data(),
                                    .output = data.data(),
                                    .count = data.size()});
      c.wait(request);
      if (data[0] != sum_over_ranks(size, 0)) return "not blocking: another sum";
    }
    if (call % 13 == 0) {
      std::fill(other.begin(), other.end(), me + call);
      c.allreduce(std::span(other), ReduceOp::max);
      if (other.back() != size - 1 + call) return "another maximum";
    }
    if (call % 17 == 0 && size > 1) {
      const std::int32_t token = me;
      std::int32_t heard = -1;
      c.sendrecv<std::int32_t>(std::span(&token, 1), (me + 1) % size, std::span(&heard, 1),
                               (me + size - 1) % size, 3);
      if (heard != (me + size - 1) % size) return "another message";
    }
    if (call % 19 == 0) {  // refused, and nobody else hears of it
      std::vector<float> floats(count);
      try {
        c.allreduce(std::span(floats), ReduceOp::bxor);
        return "a bitwise operation on floats";
      } catch (const Error& error) {
        if (error.code() != Errc::unsupported) return error.what();
      }
    }
  }
  return "";
}

TEST(Repeat, gives_the_right_sums_whatever_comes_between) {
  for (const int size : {1, 2, 3, 4, 8}) {
    test::Complaints complaints(size);
    test::on_local(size, [&](Communicator& c) {
      for (const auto count : kCounts) complaints.add(c.rank(), repeat(c, 700, count));
    });
    EXPECT_EQ(complaints.text(), "") << size;
    for (const auto medium : test::kAllMedia) {
      const auto told = test::fork_ranks(
          size,
          [&](const test::Seat& seat) {
            auto c = seat.join();
            for (const auto count : kCounts)
              if (const auto fault = repeat(c, 300, count); !fault.empty()) seat.tell(fault);
          },
          medium);
      EXPECT_TRUE(told.empty()) << size << ' ' << name(medium) << ": " << told.front();
    }
  }
}

// All others repeat what they did a hundred times, in the same buffer, when one does something
// else.
TEST(Repeat, does_not_hide_a_call_that_differs) {
  for (const auto medium : test::kMedia)
    for (const auto& mismatch : test::mismatches()) {
      const auto told = test::fork_ranks(
          2,
          [&](const test::Seat& seat) {
            auto c = seat.join("all", {.timeout = std::chrono::seconds(20)});
            std::vector<float> data(2);
            for (int call = 0; call < 100; ++call) mismatch.call(c, data, false);
            const auto ending = test::provoke(c, mismatch, data, seat.rank == 1);
            const auto fault = test::complaint(mismatch, ending, 1);
            if (!fault.empty()) seat.tell(fault);
          },
          medium);
      EXPECT_TRUE(told.empty()) << mismatch.what << ": " << told.front();
    }
}

// Late, and then gone: after a schedule was refused, which ends no call, but was on its way to.
TEST(Repeat, says_who_is_late_and_who_is_gone) {
  for (const auto medium : test::kMedia) {
    const auto told = test::fork_ranks(
        2,
        [](const test::Seat& seat) {
          int warnings = 0;
          Options options{.timeout = std::chrono::seconds(2)};
          options.warn = [&](std::string_view) { ++warnings; };
          auto c = seat.join("late", options);
          std::vector<float> data(2);
          const auto calls = [&](int count) {
            for (int call = 0; call < count; ++call) c.allreduce(std::span(data));
          };
          calls(100);
          EXPECT_THROW(c.install({}), Error);
          if (seat.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
          calls(100);
          if (seat.rank == 1) return;
          EXPECT_GT(warnings, 0);
          EXPECT_GT(c.last_moved().sent, 0U);
          EXPECT_THROW(c.install({}), Error);
          try {
            calls(1);
            seat.tell("nobody is missed");
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::peer_lost) << error.what();
            EXPECT_EQ(error.context().peer, 1) << error.what();
          }
        },
        medium);
    EXPECT_TRUE(told.empty()) << told.front();
  }
}

// Whoever watches sees every call, early or not, and none once he has left.
TEST(Repeat, every_call_is_observed) {
  struct Count final : Observer {
    void on_event(const Event& event) noexcept override {
      calls += event.kind == EventKind::collective ? 1 : 0;
    }
    int calls = 0;
  };
  test::on_local(2, [](Communicator& c) {
    std::vector<float> data(2);
    for (int call = 0; call < 50; ++call) c.allreduce(std::span(data));
    Count count;
    c.observe(&count);
    for (int call = 0; call < 50; ++call) c.allreduce(std::span(data));
    c.observe(nullptr);
    for (int call = 0; call < 50; ++call) {
      if (call % 10 == c.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      c.allreduce(std::span(data));
    }
    EXPECT_EQ(count.calls, 50);
  });
}

}  // namespace
}  // namespace sinew
