// What ranks tell of their hosts, and what follows: how crowded they are, and which are near.
#include "mpi/hosts.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sinew::mpi {
namespace {

Resident on(std::uint64_t host, std::initializer_list<int> processors, int quota = 64) {
  Resident resident;
  resident.host = host;
  resident.quota = quota;
  for (const int processor : processors) CPU_SET(processor, &resident.processors);
  return resident;
}

TEST(Hosts, of_one_kernel_are_no_nodes) {
  EXPECT_TRUE(nodes_of(std::vector{on(7, {0}), on(7, {1})}).empty());
  EXPECT_TRUE(nodes_of(std::vector{on(7, {0})}).empty());
}

TEST(Hosts, are_numbered_as_their_ranks_come) {
  const std::vector ranks{on(9, {0}), on(4, {0}), on(9, {1}), on(2, {0})};
  EXPECT_EQ(nodes_of(ranks), (std::vector{0, 1, 0, 2}));
}

TEST(Hosts, give_each_rank_a_core_where_there_are_enough) {
  EXPECT_EQ(shared_cores(std::vector{on(1, {0}), on(1, {1})}), 2);
  EXPECT_EQ(shared_cores(std::vector{on(1, {0, 1, 2, 3}), on(1, {0, 1, 2, 3})}), 4);
}

TEST(Hosts, count_as_the_most_crowded_of_them) {
  // Four ranks on one processor; four on four: as if all eight had two.
  std::vector<Resident> ranks(4, on(1, {0}));
  ranks.resize(8, on(2, {0, 1, 2, 3}));
  EXPECT_EQ(shared_cores(ranks), 2);
}

TEST(Hosts, allow_no_more_than_their_quota) {
  EXPECT_EQ(shared_cores(std::vector(4, on(1, {0, 1, 2, 3}, 2))), 2);
}

TEST(Hosts, tell_of_this_process_what_the_kernel_says) {
  const auto mine = this_resident();
  EXPECT_GE(CPU_COUNT(&mine.processors), 1);
  EXPECT_GE(mine.quota, 1);
  EXPECT_EQ(mine.host, this_resident().host);
}

}  // namespace
}  // namespace sinew::mpi
