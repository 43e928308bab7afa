#include "model/program_pool.hpp"

#include <gtest/gtest.h>

#include <string_view>

#include <sinew/algorithms.hpp>

namespace sinew {
namespace {

Program program_of(const Algorithm& algorithm, int size, int rank) {
  return compile(algorithm.make({.rank = rank, .size = size, .node_of = {}}), true);
}

std::size_t kept_programs(std::string_view name, int size, Symmetry symmetry) {
  const auto& algorithm = find_algorithm(Collective::allreduce, name);
  ProgramPool pool(size, symmetry);
  for (int rank = 0; rank < size; ++rank) pool.keep(program_of(algorithm, size, rank), rank);
  return pool.count();
}

TEST(ProgramPool, ranks_that_do_the_same_share_one_program) {
  EXPECT_EQ(kept_programs("recursive_doubling", 64, Symmetry::flip), 1U);
  EXPECT_EQ(kept_programs("ring", 63, Symmetry::shift), 1U);
}

TEST(ProgramPool, ranks_that_differ_share_none) {
  EXPECT_EQ(kept_programs("recursive_doubling", 2, Symmetry::shift), 1U);
  EXPECT_EQ(kept_programs("recursive_doubling", 3, Symmetry::shift), 3U);
}

TEST(ProgramPool, a_kept_program_is_the_ranks_own) {
  int compared = 0;
  for (const auto& algorithm : algorithms())
    for (const int size : {2, 3, 8, 13})
      for (const auto symmetry : {Symmetry::none, Symmetry::shift, Symmetry::flip}) {
        ProgramPool pool(size, symmetry);
        if (!algorithm.fits({.size = size, .node_of = {}}, kOneHost)) continue;
        for (int rank = 0; rank < size; ++rank) {
          const auto own = program_of(algorithm, size, rank);
          auto kept = pool.keep(own, rank);
          for (auto& item : kept.items) item.peer = pool.peer(item, rank);
          ++compared;
          EXPECT_EQ(kept, own) << algorithm.name << ", rank " << rank << " of " << size;
        }
      }
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace sinew
