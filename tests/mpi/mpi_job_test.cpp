// Jobs of real ranks, started by the mpirun of one MPI (SINEW_TEST_MPI): whatever is wrong among
// them, they say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/text.hpp"
#include "runtime/mpi_plugin.hpp"
#include "support/program.hpp"

namespace sinew {
namespace {

using Words = std::vector<std::string>;

Mpi tested() {
  const char* name = std::getenv("SINEW_TEST_MPI");
  return parse_mpi(name != nullptr ? name : "openmpi");
}

test::Ran job(int ranks, const Words& program) {
  Words words;
  for (const auto word : split(mpirun_words(tested()), ' ')) words.emplace_back(word);
  words.push_back(std::to_string(ranks));
  words.insert(words.end(), program.begin(), program.end());
  return test::run(words);
}

void expect_fine(const test::Ran& ran) {
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
}

void expect_checked(int ranks, Words checks) {
  checks.insert(checks.begin(), SINEW_MPI_RANKS);
  expect_fine(job(ranks, checks));
}

std::string own_program() { return fmt::format("{}-{}", SINEW_OWN_MPI, name(tested())); }

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, every_algorithm_gives_exact_results) { expect_checked(GetParam(), {"data"}); }
INSTANTIATE_TEST_SUITE_P(Sizes, Ranks, testing::Values(1, 2, 3, 4, 5, 7, 8));

TEST(Job, moves_long_data_messages_and_groups) {
  expect_checked(4, {"large", "messages", "groups"});
  expect_checked(1, {"groups"});
}

TEST(Job, threads_may_have_a_communicator_each) { expect_checked(2, {"threads"}); }

TEST(Job, allocates_nothing_once_it_is_warm) { expect_checked(2, {"allocations"}); }

TEST(Job, names_both_sides_of_every_mismatch) {
  expect_checked(2, {"mismatched"});
  expect_checked(4, {"mismatched", "lengths"});
}

TEST(Job, names_ranks_that_are_late_or_gone_and_goes_on) {
  expect_checked(3, {"late", "left", "alone", "absent"});
}

TEST(Job, uses_the_numbers_of_communicators_again_without_stray_messages) {
  expect_checked(2, {"many"});
}

TEST(Job, leaves_the_traffic_of_a_program_with_its_own_MPI_alone) {
  expect_fine(job(3, {own_program()}));
  expect_fine(job(2, {own_program(), "outlives"}));
}

TEST(Job, benches) {
  const auto ran =
      job(2, {SINEW_PROGRAM, "bench", "allreduce", "broadcast", "barrier", "--transport", "mpi",
              "--sizes", "8,64K", "--rounds", "1", "--budget", "0.02", "--style", "csv"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(split(ran.out, '\n').size(), 7U) << ran.out;  // head, five rows, nothing
  EXPECT_NE(ran.out.find("allreduce"), std::string::npos) << ran.out;
}

TEST(Job, bench_starts_its_own_ranks) {
  const auto ran = test::sinew({"bench", "allreduce", "--transport", "mpi", "--mpi",
                                std::string(name(tested())), "-p", "2", "--sizes", "8,64K",
                                "--rounds", "1", "--budget", "0.02", "--style", "csv"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(split(ran.out, '\n').size(), 4U) << ran.out;
}

TEST(Job, bench_refuses_what_makes_no_sense_under_mpirun) {
  const auto bench = [](Words options) {
    options.insert(options.begin(), {SINEW_PROGRAM, "bench", "allreduce"});
    return job(2, options);
  };
  EXPECT_NE(bench({}).err.find("mpirun started 2 of this program"), std::string::npos);
  EXPECT_NE(bench({"--transport", "mpi", "-p", "3"}).err.find("-p 3, but mpirun started 2"),
            std::string::npos);
  EXPECT_NE(bench({"--transport", "mpi", "--against", "gloo"}).err.find("--against needs"),
            std::string::npos);
}

}  // namespace
}  // namespace sinew
