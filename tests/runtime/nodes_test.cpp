// Ranks in several memory domains: who knows of them, what is chosen there, and that it is right.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>

#include "support/exact_data.hpp"
#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"
#include "support/program.hpp"

namespace sinew {
namespace {

const std::vector<int> kTwoOfFour{0, 0, 0, 0, 1, 1, 1, 1};

// "" when the algorithm is a candidate, else why not.
std::string refused(const Communicator& c, std::string_view algorithm,
                    Collective collective = Collective::allreduce) {
  for (const auto& candidate : c.explain({.collective = collective, .count = 1000}))
    if (candidate.algorithm == algorithm) return std::string(candidate.refused);
  return "unknown";
}

test::LocalSetup on_domains(std::vector<int> domains) {
  test::LocalSetup setup;
  setup.domains = std::move(domains);
  return setup;
}

TEST(Nodes, two_of_four_ranks_make_two_level_a_candidate_beside_the_others) {
  test::on_local(
      8,
      [](Communicator& c) {
        for (const auto collective :
             {Collective::allreduce, Collective::reduce, Collective::broadcast}) {
          EXPECT_EQ(refused(c, "two_level", collective), "");
          EXPECT_EQ(refused(c, "direct", collective), "");  // memory is still shared by all
        }
        EXPECT_EQ(refused(c, "flat"), "");
      },
      on_domains(kTwoOfFour));
}

TEST(Nodes, in_one_domain_two_level_does_not_fit) {
  for (const auto& domains : {std::vector<int>{}, std::vector<int>(4, 7), {0, 1, -1, 1}})
    test::on_local(
        4, [](Communicator& c) { EXPECT_EQ(refused(c, "two_level"), "does not fit these ranks"); },
        on_domains(domains));
}

TEST(Nodes, of_one_rank_each_are_no_reason_to_choose_two_level_but_it_works_by_name) {
  for (const auto& domains : {std::vector{5, 9, 9, 9}, {0, 1, 2, 3}})
    test::on_local(
        4,
        [](Communicator& c) {
          EXPECT_EQ(refused(c, "two_level"), "pays with two nodes of two ranks");
          std::vector<float> data(100, 1);
          c.allreduce(std::span(data));
          c.allreduce(std::span(data), ReduceOp::sum, {.algorithm = "two_level"});
          EXPECT_EQ(data[99], 16);
        },
        on_domains(domains));
}

TEST(Nodes, groups_that_are_split_off_keep_their_domains) {
  test::on_local(
      8,
      [](Communicator& c) {
        const auto inside = c.split(c.rank() / 4);
        EXPECT_EQ(refused(inside, "two_level"), "does not fit these ranks");
        const auto across = c.split(c.rank() % 2);
        EXPECT_EQ(refused(across, "two_level"), "");
      },
      on_domains(kTwoOfFour));
}

std::vector<test::Trial> on_levels(const std::vector<int>& domains) {
  auto trials = test::sweep(static_cast<int>(domains.size()), domains);
  std::erase_if(trials, [](const auto& trial) { return trial.algorithm->name != "two_level"; });
  return trials;
}

TEST(Nodes, two_level_is_exact_over_local) {
  for (const auto& domains : {kTwoOfFour, {0, 1, 0, 1, 0}, {3, 3, 1}, {0, 1, 2, 0, 1, 2, 2}})
    for (const bool small_slots : {false, true}) {
      auto setup = on_domains(domains);
      if (small_slots) setup.segment.slot_bytes = 4096;
      const int size = static_cast<int>(domains.size());
      test::Complaints wrong(size);
      test::on_local(
          size,
          [&](Communicator& c) {
            for (const auto& trial : on_levels(domains))
              wrong.add(c.rank(), test::attempt(c, trial));
          },
          setup);
      EXPECT_EQ(wrong.text(), "");
    }
}

TEST(Nodes, two_level_is_exact_over_shm) {
  const auto trials = on_levels(kTwoOfFour);
  ASSERT_FALSE(trials.empty());
  const auto wrong = test::fork_ranks(8, [&](const test::Seat& seat) {
    const auto domain = kTwoOfFour[static_cast<std::size_t>(seat.rank)];
    auto communicator = seat.join("nodes", {}, {}, domain);
    if (const auto why = refused(communicator, "two_level"); !why.empty()) seat.tell(why);
    for (const auto& trial : trials)
      if (const auto what = test::attempt(communicator, trial); !what.empty()) seat.tell(what);
  });
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

// A machine of two memory domains, as hwloc can be told; the processors are real.
void pretend_two_domains() {
  ::setenv("HWLOC_SYNTHETIC", "numa:2 core:1 pu:1", 1);
  ::setenv("HWLOC_THISSYSTEM", "1", 1);
}

bool has_processors_0_and_1() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  return ::sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_ISSET(0, &mine) &&
         CPU_ISSET(1, &mine);
}

TEST(Nodes, are_found_from_what_ranks_are_bound_to) {
  if (!has_processors_0_and_1()) GTEST_SKIP() << "needs processors 0 and 1";
  for (const bool bound : {true, false}) {
    const auto told = test::fork_ranks(4, [&](const test::Seat& seat) {
      pretend_two_domains();
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(seat.rank / 2, &one);
      if (bound) ::sched_setaffinity(0, sizeof one, &one);
      seat.tell(refused(seat.join(), "two_level"));
    });
    const std::string expected = bound ? "" : "does not fit these ranks";
    EXPECT_EQ(told, std::vector<std::string>(4, expected));
  }
}

// Run by the test below, in ranks that `sinew launch` has started.
TEST(Launched, rank_tells_whether_two_level_fits) {
  if (std::getenv("SINEW_RANK") == nullptr) GTEST_SKIP() << "only under sinew launch";
  fmt::print("two_level: '{}'\n", refused(connect(), "two_level"));
}

TEST(Nodes, follow_from_launch_bind) {
  if (!has_processors_0_and_1()) GTEST_SKIP() << "needs processors 0 and 1";
  pretend_two_domains();
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  for (const auto& [bind, expected] : {std::pair{"numa", "two_level: ''"},
                                       {"core", "two_level: ''"},
                                       {"none", "two_level: 'does not fit these ranks'"}}) {
    const auto ran = test::sinew({"launch", "-n", "4", "--bind", bind, "--no-label", "--", self,
                                  "--gtest_filter=Launched.*"});
    EXPECT_EQ(ran.status, 0);
    int ranks = 0;
    for (const auto& line : test::lines_of(ran.out)) ranks += line == expected ? 1 : 0;
    EXPECT_EQ(ranks, 4) << bind << ran.out << ran.err;
  }
  ::unsetenv("HWLOC_SYNTHETIC");
  ::unsetenv("HWLOC_THISSYSTEM");
}

}  // namespace
}  // namespace sinew
