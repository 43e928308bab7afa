// Jobs of real ranks, started by the mpirun of one MPI (SINEW_TEST_MPI): whatever is wrong among
// them, they say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

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
  Words words{"timeout", "-k", "5", "120"};
  for (const auto word : split(mpirun_words(tested()), ' ')) words.emplace_back(word);
  words.push_back(std::to_string(ranks));
  words.insert(words.end(), program.begin(), program.end());
  return test::run(words);
}

// Ranks end with another status if anything is wrong. MPIs may say something after a failure.
void expect_fine(const test::Ran& ran) {
  EXPECT_EQ(ran.status, 0) << ran.out.substr(0, 2000) << ran.err.substr(0, 2000);
}

void expect_checked(int ranks, Words checks) {
  checks.insert(checks.begin(), SINEW_MPI_RANKS);
  expect_fine(job(ranks, checks));
}

std::string own_program() { return fmt::format("{}-{}", SINEW_OWN_MPI, name(tested())); }

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, every_algorithm_gives_exact_results) { expect_checked(GetParam(), {"data"}); }
INSTANTIATE_TEST_SUITE_P(Sizes, Ranks, testing::Values(1, 2, 3, 4, 7));

TEST(Job, moves_long_data_and_messages_in_groups_and_threads) {
  expect_checked(4, {"large", "messages", "groups", "threads"});
}

TEST(Job, allocates_nothing_once_it_is_warm_and_uses_communicators_numbers_again) {
  expect_checked(2, {"allocations", "many"});
}

TEST(Job, names_both_sides_of_every_mismatch) { expect_checked(4, {"mismatched", "lengths"}); }

TEST(Job, names_ranks_that_are_late_or_gone_and_goes_on) {
  expect_checked(3, {"late", "left", "alone", "absent", "unread"});
}

TEST(Job, leaves_the_traffic_of_a_program_with_its_own_MPI_alone) {
  expect_fine(job(2, {own_program()}));
  expect_fine(job(2, {own_program(), "outlives"}));
  expect_fine(job(2, {own_program(), "funneled"}));
}

// Two of the ranks see another kernel's identity, as they would on another host.
TEST(Job, knows_which_ranks_are_on_another_host) {
  if (tested() == Mpi::mpich)
    GTEST_SKIP() << "its end takes long there: see Process::leave_in_time";
  const Words elsewhere{"unshare",
                        "-m",
                        "sh",
                        "-c",
                        R"(id=$(mktemp) && echo 01234567-89ab-cdef-0123-456789abcdef > $id
                           mount --bind $id /proc/sys/kernel/random/boot_id; status=$?
                           rm $id; test $status = 0 && exec "$@")",
                        "sh"};
  auto probe = elsewhere;
  probe.emplace_back("true");
  if (test::run(probe).status != 0) GTEST_SKIP() << "may not make namespaces";
  Words words{SINEW_MPI_RANKS, "hosts", ":", "-n", "2"};
  words.insert(words.end(), elsewhere.begin(), elsewhere.end());
  words.insert(words.end(), {SINEW_MPI_RANKS, "hosts"});
  expect_fine(job(2, words));
}

// MPI ends the whole job; what matters is that nobody is left to wait.
TEST(Job, ends_when_a_rank_dies) {
  const auto begun = Clock::now();
  const auto ran = job(3, {SINEW_MPI_RANKS, "dies"});
  EXPECT_NE(ran.status, 0);
  EXPECT_LT(Clock::now() - begun, std::chrono::seconds(20));
  EXPECT_EQ(ran.out.find("dies: "), std::string::npos) << ran.out;
}

void expect_said(const test::Ran& ran, const std::string& text) {
  EXPECT_NE(ran.status, 0);
  EXPECT_NE(ran.out.find(text), std::string::npos) << text << "\n" << ran.out << ran.err;
}

TEST(Job, says_what_to_do_without_mpirun) {
  expect_said(test::run({SINEW_MPI_RANKS, "data"}),
              "the mpi transport needs ranks started by an MPI: `mpirun.openmpi");
}

TEST(Job, says_when_another_launcher_started_the_ranks) {
  const auto mpi = fmt::format("SINEW_MPI={}", name(tested()));
  expect_said(test::run({"env", mpi, "SINEW_RANK=0", "SINEW_SIZE=2", SINEW_MPI_RANKS, "data"}),
              fmt::format("2 ranks were started (SINEW_RANK), but {} sees 1",
                          tested() == Mpi::openmpi ? "Open MPI" : "MPICH"));
}

TEST(Job, says_where_it_looked_for_a_plugin_that_is_missing) {
  std::string folder = "/tmp/sinew-no-plugin-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto program = folder + "/rank";
  std::filesystem::copy_file(SINEW_MPI_RANKS, program);
  const auto ran = job(1, {"env", "-u", "SINEW_PLUGINS", program, "data"});
  std::filesystem::remove_all(folder);
  expect_said(ran, fmt::format("no libsinew-mpi-{}.so in {}", name(tested()), folder));
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
  const auto refusal = [](int rank, Words options) {
    const bool open = tested() == Mpi::openmpi;
    options.insert(
        options.begin(),
        {"env", fmt::format("{}={}", open ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK", rank),
         open ? "OMPI_COMM_WORLD_SIZE=2" : "PMI_SIZE=2", SINEW_PROGRAM, "bench", "allreduce"});
    const auto ran = test::run(options);
    EXPECT_EQ(ran.status, 2);
    return ran.err;
  };
  const auto says = [&](const Words& options, std::string_view text) {
    EXPECT_NE(refusal(0, options).find(text), std::string::npos);
    EXPECT_EQ(refusal(1, options), "");  // rank 0 has said it
  };
  says({}, "mpirun started 2 of this program");
  says({"--transport", "mpi", "-p", "3"}, "-p 3, but mpirun started 2");
  says({"--transport", "mpi", "--against", "gloo"}, "--against needs");
  says({"--transport", "mpi", "--sweep", "chunk=64K,1M"}, "--sweep starts ranks");
}

}  // namespace
}  // namespace sinew
