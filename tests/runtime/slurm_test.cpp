// connect() in a real Slurm of one node, which tests/programs/slurm.sh starts for the occasion.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "support/program.hpp"

namespace sinew::test {
namespace {

TEST(Slurm, ranks_of_a_step_find_each_other_by_every_way_it_offers) {
  if (std::getenv("SINEW_FULL") == nullptr) GTEST_SKIP() << "only with SINEW_FULL=1";
  std::string script;
  for (const auto* step : {"-n 4 env SINEW_TRANSPORT=shm", "-n 4 env SINEW_TRANSPORT=tcp",
                           "-n 3 --mpi=pmi2", "-n 3 --mpi=pmix", "-n 1"})
    script +=
        fmt::format("echo '{0}:' && timeout 30 srun {0} {1} 20 && ", step, SINEW_RANK_PROGRAM);
  const auto ran = run({"timeout", "-s", "KILL", "120", SINEW_SOURCE_DIR "/tests/programs/slurm.sh",
                        "sh", "-c", script + "true"});
  if (ran.status == 77) GTEST_SKIP() << ran.err;
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  const auto lines = lines_of(ran.out);
  const auto said = [&](const std::string& line) {
    return std::count(lines.begin(), lines.end(), line);
  };
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(said(fmt::format("rank {} of 4 over shm: right", rank)), 1) << ran.out;
    EXPECT_EQ(said(fmt::format("rank {} of 4 over tcp: right", rank)), 1) << ran.out;
  }
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(said(fmt::format("rank {} of 3 over shm: right", rank)), 2) << ran.out;
}

}  // namespace
}  // namespace sinew::test
