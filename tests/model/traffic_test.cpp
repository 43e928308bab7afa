// Traffic counted from schedules: known formulas, and what holds for every world.
#include "model/traffic.hpp"

#include <gtest/gtest.h>

#include "support/worlds.hpp"

namespace sinew {
namespace {

Traffic most(Collective collective, std::string_view algorithm, int size) {
  return busiest(traffic(make_world(find_algorithm(collective, algorithm), size)).ranks);
}

TEST(Traffic, what_is_sent_is_received) {
  for (const auto& algorithm : algorithms())
    for (const int size : {1, 2, 3, 8, 13})
      for (const auto& setting : settings(algorithm, size)) {
        std::uint64_t sent = 0, received = 0, sends = 0, recvs = 0;
        for (const auto& rank : traffic(setting.world()).ranks) {
          sent += rank.sent;
          received += rank.received;
          sends += rank.sends;
          recvs += rank.recvs;
        }
        EXPECT_EQ(sent, received) << to_string(setting);
        EXPECT_EQ(sends, recvs) << to_string(setting);
      }
}

TEST(Traffic, a_ring_allreduce_sends_twice_all_but_one_part_in_as_many_rounds) {
  for (int size = 2; size <= 9; ++size) {
    const auto counted = traffic(make_world(find_algorithm(Collective::allreduce, "ring"), size));
    const auto steps = static_cast<std::uint32_t>(2 * (size - 1));
    EXPECT_EQ(counted.message, static_cast<std::uint32_t>(size));
    EXPECT_EQ(counted.rounds, steps);
    for (const auto& rank : counted.ranks)
      EXPECT_EQ(rank, (Traffic{.sends = steps, .recvs = steps, .sent = steps, .received = steps}));
  }
}

TEST(Traffic, doubling_sends_everything_in_each_of_log2_rounds) {
  EXPECT_EQ(most(Collective::allreduce, "recursive_doubling", 8).sent, 3U);
  EXPECT_EQ(most(Collective::allreduce, "recursive_doubling", 8).sends, 3U);
}

TEST(Traffic, shared_memory_is_counted_apart_from_messages) {
  const auto flat = most(Collective::allreduce, "flat", 8);
  EXPECT_EQ(flat, (Traffic{.written = 1, .read = 7}));
  const auto direct = most(Collective::allreduce, "direct", 8);
  EXPECT_EQ(direct, (Traffic{.written = 8, .read = 14}));  // eighths: all but mine, then mine
  const auto shared = most(Collective::allreduce, "shared", 8);
  EXPECT_EQ(shared, (Traffic{.written = 7, .read = 7}));
}

TEST(Traffic, one_rank_alone_sends_nothing) {
  for (const auto& algorithm : algorithms())
    for (const auto& setting : settings(algorithm, 1)) {
      const auto counted = traffic(setting.world());
      EXPECT_EQ(counted.ranks[0].sent, 0U) << to_string(setting);
      EXPECT_EQ(counted.ranks[0].read, 0U) << to_string(setting);
    }
}

TEST(Traffic, a_barrier_moves_messages_but_no_data) {
  const auto counted = traffic(make_world(find_algorithm(Collective::barrier, "dissemination"), 8));
  EXPECT_EQ(counted.message, 0U);
  EXPECT_EQ(counted.ranks[0], (Traffic{.sends = 3, .recvs = 3}));
}

}  // namespace
}  // namespace sinew
