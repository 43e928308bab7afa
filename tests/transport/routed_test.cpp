// Two hosts of two ranks, each a group of threads: near ranks over one segment, all over another.
#include "transport/routed/routed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include <sinew/communicator.hpp>
#include "transport/local/local.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

// Ranks of the nodes as listed; what each threw, if anything.
std::vector<std::optional<Error>> on_nodes(const std::vector<int>& node_of,
                                           const std::function<void(Communicator&)>& body,
                                           const Options& options = {.timeout = 20s}) {
  const auto size = static_cast<int>(node_of.size());
  const auto far = LocalHub::make(size);
  std::map<int, std::shared_ptr<LocalHub>> near;
  for (const int node : node_of)
    near.emplace(
        node, LocalHub::make(static_cast<int>(std::count(node_of.begin(), node_of.end(), node))));
  std::vector<std::optional<Error>> errors(node_of.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      const auto node = node_of[static_cast<std::size_t>(rank)];
      const auto place =
          static_cast<int>(std::count(node_of.begin(), node_of.begin() + rank, node));
      const bool alone = std::count(node_of.begin(), node_of.end(), node) == 1;
      try {
        Communicator communicator(
            route({far->join(rank), alone ? nullptr : near.at(node)->join(place), node_of}),
            options);
        body(communicator);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error;
      }
    });
  for (auto& thread : threads) thread.join();
  return errors;
}

void expect_none(const std::vector<std::optional<Error>>& errors) {
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
}

TEST(Routed, sums_are_right_however_ranks_lie_on_hosts) {
  for (const auto& node_of : {std::vector<int>{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1}, {0, 1, 1}})
    expect_none(on_nodes(node_of, [](Communicator& c) {
      EXPECT_EQ(c.transport(), "auto");
      for (const std::size_t count : {0, 1, 5, 20'011}) {
        std::vector<std::int64_t> data(count);
        for (std::size_t i = 0; i < count; ++i)
          data[i] = (c.rank() + 1) * static_cast<std::int64_t>(i + 1);
        c.allreduce(std::span(data));
        const std::int64_t ranks = c.size() * (c.size() + 1) / 2;
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(data[i], ranks * static_cast<std::int64_t>(i + 1));
      }
    }));
}

TEST(Routed, groups_of_both_kinds_of_ranks_work) {
  expect_none(on_nodes({0, 0, 1, 1, 1}, [](Communicator& c) {
    auto part = c.split(c.rank() % 2, 0);
    std::int32_t one = 1;
    part.allreduce(std::span(&one, 1));
    EXPECT_EQ(one, part.size());
    std::int32_t from = part.rank();
    part.broadcast(std::span(&from, 1), part.size() - 1);
    EXPECT_EQ(from, part.size() - 1);
  }));
}

TEST(Routed, messages_take_the_way_to_their_peer_and_stay_in_order) {
  expect_none(on_nodes({0, 1, 0, 1}, [](Communicator& c) {
    std::vector<Request> requests;
    std::vector<std::int32_t> in(8), out(8);
    for (int peer = 0; peer < c.size(); ++peer)
      for (const std::uint32_t tag : {0U, 1U}) {
        const auto at = static_cast<std::size_t>(2 * peer) + tag;
        out[at] = 100 * c.rank() + static_cast<std::int32_t>(at);
        requests.push_back(c.irecv(std::span(&in[at], 1), peer, tag));
        requests.push_back(c.isend(std::span<const std::int32_t>(&out[at], 1), peer, tag));
      }
    c.wait_all(requests);
    for (int peer = 0; peer < c.size(); ++peer)
      for (int tag = 0; tag < 2; ++tag)
        EXPECT_EQ(in[static_cast<std::size_t>(2 * peer + tag)], 100 * peer + 2 * c.rank() + tag);
  }));
}

// Rank 3 is the second of its host; errors must not call it rank 1.
TEST(Routed, errors_name_ranks_by_their_number_among_all) {
  const auto errors = on_nodes({0, 0, 1, 1}, [](Communicator& c) {
    std::vector<float> data(c.rank() == 3 ? 7 : 5);
    c.allreduce(std::span(data));
    c.barrier();
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::mismatch) << error->what();
    EXPECT_NE(std::string(error->what()).find("rank 3 called allreduce of 7"), std::string::npos)
        << error->what();
  }
}

TEST(Routed, a_rank_a_host_needs_no_routes) {
  expect_none(on_nodes({0, 1, 2}, [](Communicator& c) { EXPECT_EQ(c.transport(), "local"); }));
}

TEST(Routed, whoever_is_left_goes_on) {
  for (const int leaves : {0, 1, 3})
    expect_none(on_nodes({0, 0, 1, 1}, [&](Communicator& c) {
      const int self = c.rank();
      std::vector<std::int64_t> data{1 << self};
      c.allreduce(std::span(data));
      if (self == leaves) return;
      EXPECT_THROW(
          {
            while (true) c.allreduce(std::span(data));
          },
          Error);
      auto next = c.shrink();
      EXPECT_EQ(next.size(), 3);
      EXPECT_EQ(next.rank(), self - (self > leaves ? 1 : 0));
      data[0] = 1 << self;
      next.allreduce(std::span(data));
      EXPECT_EQ(data[0], 15 - (1 << leaves));
    }));
}

}  // namespace
}  // namespace sinew
