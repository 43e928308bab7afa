// Several operations in flight: started, tested and waited for in any order, on several groups.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"

namespace sinew {
namespace {

// Started allreduces of different sizes with what each must become.
struct Flight {
  std::vector<std::int64_t> data;
  std::int64_t sum = 0;
  Request request;
};

Flight start_sum(Communicator& communicator, std::size_t count, int salt,
                 std::string_view algorithm = "") {
  const int size = communicator.size();
  Flight flight;
  flight.data.assign(count, (communicator.rank() + 1) * (salt + 1));
  flight.sum = std::int64_t{size} * (size + 1) / 2 * (salt + 1);
  flight.request = communicator.start({.collective = Collective::allreduce,
                                       .dtype = DType::i64,
                                       .input = flight.data.data(),
                                       .output = flight.data.data(),
                                       .count = count,
                                       .options = {.algorithm = algorithm}});
  return flight;
}

bool is_exact(const Flight& flight) {
  return std::all_of(flight.data.begin(), flight.data.end(),
                     [&](std::int64_t x) { return x == flight.sum; });
}

void several_in_any_order(Communicator& communicator) {
  std::mt19937 random(7);  // the same on every rank
  for (int repeat = 0; repeat < 10; ++repeat) {
    std::vector<Flight> flights;
    flights.reserve(8);
    const char* names[] = {"", "ring", "flat", "direct", "halving_doubling"};
    for (int i = 0; i < 8; ++i)
      flights.push_back(start_sum(communicator, random() % 5000, i, names[random() % 5]));
    std::vector<std::size_t> order(flights.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (const auto i : order) {
      if (random() % 2 == 0) {
        communicator.wait(flights[i].request);
      } else {
        while (!communicator.test(flights[i].request)) std::this_thread::yield();
      }
      ASSERT_TRUE(is_exact(flights[i])) << "flight " << i;
      communicator.wait(flights[i].request);  // twice is fine
    }
  }
}

TEST(Started, collectives_finish_exactly_in_whatever_order_they_are_waited_for) {
  for (const int size : {1, 2, 4}) test::on_local(size, several_in_any_order);
}

TEST(Started, collectives_mix_with_blocking_ones_and_messages) {
  for (const int size : {2, 3}) {
    test::Complaints wrong(size);
    test::on_local(size, [&](Communicator& communicator) {
      const int me = communicator.rank(), right = (me + 1) % size, left = (me + size - 1) % size;
      for (int repeat = 0; repeat < 30; ++repeat) {
        auto first = start_sum(communicator, 3000, repeat);
        std::vector<std::int32_t> out(2000, me), in(2000, -1);
        const auto incoming = communicator.irecv(std::span(in), left, 3);
        const auto outgoing = communicator.isend(std::span<const std::int32_t>(out), right, 3);
        auto second = start_sum(communicator, 10, repeat + 1, "ring");
        std::vector<std::int64_t> blocking(100, me);
        communicator.allreduce(std::span(blocking));  // comes after the two
        const Request all[] = {second.request, outgoing, incoming, first.request};
        communicator.wait_all(all);
        const bool fine = is_exact(first) && is_exact(second) &&
                          blocking[99] == size * (size - 1) / 2 &&
                          std::count(in.begin(), in.end(), left) == 2000;
        if (!fine) wrong.add(me, fmt::format("rank {} repeat {}", me, repeat));
      }
    });
    EXPECT_EQ(wrong.text(), "");
  }
}

TEST(Started, more_plans_than_are_remembered_do_not_disturb_those_in_flight) {
  test::on_local(2, [](Communicator& communicator) {
    std::vector<Flight> flights;
    flights.reserve(600);
    for (std::size_t i = 0; i < 600; ++i)
      flights.push_back(start_sum(communicator, i + 1, static_cast<int>(i)));
    // A call that is refused must not leave the planner with a forgotten plan either.
    std::vector<float> data(700);
    EXPECT_THROW(communicator.allreduce(std::span(data), ReduceOp::sum, {.algorithm = "none"}),
                 Error);
    for (auto& flight : flights) {
      communicator.wait(flight.request);
      ASSERT_TRUE(is_exact(flight));
    }
  });
}

TEST(Started, a_rank_that_leaves_in_the_middle_is_named) {
  const auto errors = test::try_local(2, [](Communicator& communicator) {
    std::vector<float> data(1000, 1);
    if (communicator.rank() == 1) {
      communicator.start({.collective = Collective::allreduce,
                          .input = data.data(),
                          .output = data.data(),
                          .count = 1000,
                          .options = {.algorithm = "ring"}});
      return;  // neither waited for nor finished
    }
    communicator.allreduce(std::span(data), ReduceOp::sum, {.algorithm = "ring"});
    communicator.barrier();
  });
  ASSERT_TRUE(errors[0].has_value());
  EXPECT_EQ(errors[0]->code(), Errc::peer_lost);
  EXPECT_EQ(errors[0]->context().peer, 1);
}

// Colours of 3, 2 and 1 members of 6, with keys that reverse the order.
void uneven_groups(Communicator& parent, test::Complaints& wrong) {
  const int me = parent.rank();
  const int colour = me < 3 ? 0 : me < 5 ? 1 : 2;
  const int members[] = {3, 2, 1}, first[] = {0, 3, 5};
  auto group = parent.split(colour, -me);
  auto twin = parent.dup();
  const int size = members[colour];
  if (group.size() != size || group.rank() != first[colour] + size - 1 - me)
    wrong.add(me, fmt::format("rank {}: became {} of {}", me, group.rank(), group.size()));
  if (twin.size() != parent.size() || twin.rank() != me)
    wrong.add(me, "the duplicate is different");
  for (int repeat = 0; repeat < 20; ++repeat) {
    // Interleaved: begun on the parent, done on the others, finished on the parent.
    auto above = start_sum(parent, 4000, repeat, repeat % 2 == 0 ? "ring" : "");
    std::vector<std::int64_t> below(500, me), beside(7, 1);
    group.allreduce(std::span(below));
    twin.allreduce(std::span(beside));
    std::int64_t expected = 0;
    for (int r = first[colour]; r < first[colour] + size; ++r) expected += r;
    parent.wait(above.request);
    if (below[499] != expected || beside[6] != parent.size() || !is_exact(above))
      wrong.add(me, fmt::format("rank {} repeat {}: wrong sums", me, repeat));
  }
  auto nested = group.split(group.rank() % 2);
  std::int64_t one[] = {1};
  nested.allreduce(std::span<std::int64_t>(one));
  if (one[0] != nested.size()) wrong.add(me, "the nested group is wrong");
}

TEST(Groups, of_uneven_colours_work_beside_their_parent_over_local) {
  test::Complaints wrong(6);
  test::on_local(6, [&](Communicator& communicator) { uneven_groups(communicator, wrong); });
  EXPECT_EQ(wrong.text(), "");
}

TEST(Groups, of_uneven_colours_work_beside_their_parent_over_shm_and_tcp) {
  for (const auto medium : test::kMedia) {
    const auto body = [&](const test::Seat& seat) {
      auto communicator = seat.join();
      test::Complaints wrong(6);
      uneven_groups(communicator, wrong);
      if (!wrong.text().empty()) seat.tell(wrong.text());
    };
    const auto stories = test::fork_ranks(6, body, medium);
    EXPECT_TRUE(stories.empty()) << name(medium) << ": " << stories.front();
  }
}

TEST(Groups, duplicates_overlap_truly) {
  // A collective on the duplicate finishes while one on the parent cannot, because it lacks a rank.
  test::on_local(2, [](Communicator& communicator) {
    auto twin = communicator.dup();
    std::vector<std::int64_t> data(100, 1);
    std::optional<Flight> flight;
    if (communicator.rank() == 0) flight = start_sum(communicator, 100, 0);
    twin.allreduce(std::span(data));
    EXPECT_EQ(data[99], 2);
    if (communicator.rank() == 1) flight = start_sum(communicator, 100, 0);
    communicator.wait(flight->request);
    EXPECT_TRUE(is_exact(*flight));
  });
}

}  // namespace
}  // namespace sinew
