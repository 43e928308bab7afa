// Ranks on two hosts that connect() by themselves: near ones over memory, far ones over a network
// that works, and then does not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "support/exact_data.hpp"
#include "support/fork_ranks.hpp"
#include "support/network.hpp"
#include "support/two_hosts.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 8;
int host_of(int rank) { return rank / (kRanks / 2); }

Communicator connect_from(const test::Seat& seat, const test::TwoHosts& hosts, int host,
                          const Options& options) {
  hosts.enter(host);
  ::setenv("SINEW_RANK", std::to_string(seat.rank).c_str(), 1);
  ::setenv("SINEW_SIZE", std::to_string(seat.size).c_str(), 1);
  ::setenv("SINEW_RENDEZVOUS", fmt::format("tcp://{}:24680", test::TwoHosts::address(0)).c_str(),
           1);
  ::setenv("SINEW_TOKEN", std::string(64, 'a').c_str(), 1);
  return connect(options);
}

std::vector<test::Trial> trials_on_two_hosts() {
  std::vector<int> node_of(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) node_of[static_cast<std::size_t>(rank)] = host_of(rank);
  auto trials = test::sweep(kRanks, node_of);
  std::erase_if(trials, [&](const test::Trial& trial) {
    return trial.shared_buffers || !trial.algorithm->fits({0, kRanks, 0, 1, node_of}, {});
  });
  return trials;
}

std::string compare_all() {
  const test::TwoHosts hosts;
  if (!hosts.missing().empty()) return "skip: " + hosts.missing();
  const auto trials = trials_on_two_hosts();
  std::map<Collective, int> of;
  for (const auto& trial : trials) ++of[trial.algorithm->collective];
  const auto told = test::fork_ranks(kRanks, [&](const test::Seat& seat) {
    auto communicator = connect_from(seat, hosts, host_of(seat.rank), {.timeout = 30s});
    if (communicator.transport() != "auto") seat.tell(std::string(communicator.transport()));
    for (const auto& trial : trials)
      if (const auto what = test::attempt(communicator, trial); !what.empty()) seat.tell(what);
  });
  fmt::print("{} trials of {} collectives on 2 hosts of {} ranks\n", trials.size(), of.size(),
             kRanks / 2);
  std::fflush(stdout);
  if (of.size() != 9) return "a collective is missing";
  return told.empty() ? "" : told.front();
}

TEST(Hosts, every_algorithm_gives_exact_results_across_two_of_four_ranks) {
  const auto wrong = test::in_own_place(compare_all);
  if (wrong.starts_with("skip: ")) GTEST_SKIP() << wrong;
  EXPECT_EQ(wrong, "");
}

// "ready", then how long the call that failed took, in ms, and the error.
void sum_until_it_breaks(const test::Seat& seat, const test::TwoHosts& hosts,
                         std::chrono::milliseconds timeout) {
  auto communicator = connect_from(seat, hosts, host_of(seat.rank), {.timeout = 20s});
  std::vector<float> data(1000);
  communicator.barrier();
  seat.tell("ready");
  auto entered = Clock::now();
  try {
    while (true) {
      entered = Clock::now();
      communicator.allreduce(std::span(data), ReduceOp::sum, {.timeout = timeout});
    }
  } catch (const Error& error) {
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - entered);
    seat.tell(fmt::format("{} {}", took.count(), error.what()));
  }
}

// It must name a rank of the other host, and call nobody of its own gone or silent. One of its own
// may rightly be said to be in the operation before, where it waits for the other host.
std::string complaint_of(const test::Told& told, int rank, std::chrono::milliseconds limit) {
  if (told.lines.size() != 2 || told.status != 0)
    return fmt::format("rank {} ended with {}", rank, told.status);
  const auto& story = told.lines[1];
  if (std::stoi(story) > limit.count()) return fmt::format("rank {} late: {}", rank, story);
  bool names_far = false, blames_near = false;
  for (int other = 0; other < kRanks; ++other)
    for (const auto* what : {"has not entered", "is gone", "has entered it but is silent"}) {
      if (story.find(fmt::format("rank {} {}", other, what)) == std::string::npos) continue;
      const bool near = host_of(other) == host_of(rank);
      names_far |= !near;
      blames_near |= near && std::string_view(what) != "has not entered";
    }
  return names_far && !blames_near ? "" : fmt::format("rank {}: {}", rank, story);
}

std::string cut_the_cable(std::chrono::milliseconds timeout) {
  const test::TwoHosts hosts;
  if (!hosts.missing().empty()) return "skip: " + hosts.missing();
  test::ForkedRanks ranks(
      kRanks, [&](const test::Seat& seat) { sum_until_it_breaks(seat, hosts, timeout); });
  if (!ranks.wait_for_lines(1, 20s)) return "the job did not begin";
  if (const auto refusal = hosts.cut(); !refusal.empty()) return "skip: no nft here: " + refusal;
  const auto all = ranks.finish(timeout + 10s);
  std::string wrong;
  int most_ms = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto& told = all[static_cast<std::size_t>(rank)];
    wrong += complaint_of(told, rank, timeout + 1s);
    if (told.lines.size() == 2) most_ms = std::max(most_ms, std::stoi(told.lines[1]));
  }
  fmt::print("cut in two: {} ranks told within {} ms, deadline {} ms; rank 0 said: {}\n", kRanks,
             most_ms, timeout.count(), all[0].lines.back());
  std::fflush(stdout);
  return wrong;
}

TEST(Hosts, cut_in_two_every_rank_names_the_other_side_by_its_deadline) {
  const auto wrong = test::in_own_place([] { return cut_the_cable(1500ms); });
  if (wrong.starts_with("skip: ")) GTEST_SKIP() << wrong;
  EXPECT_EQ(wrong, "");
}

// Three ranks on one host and two on the other, which lose sight of each other.
constexpr int kMajority = 3, kUneven = 5;

void go_on_after_the_cut(const test::Seat& seat, const test::TwoHosts& hosts) {
  auto communicator = connect_from(seat, hosts, seat.rank < kMajority ? 0 : 1, {.timeout = 20s});
  std::vector<float> data(1000);
  communicator.barrier();
  seat.tell("ready");
  try {
    while (true) communicator.allreduce(std::span(data), ReduceOp::sum, {.timeout = 1s});
  } catch (const Error& error) {
  }
  try {
    auto left = communicator.shrink(1s);
    std::vector<std::int64_t> sum(1000, 1LL << seat.rank);
    left.allreduce(std::span(sum));
    const bool same = std::equal(sum.begin() + 1, sum.end(), sum.begin());
    seat.tell(fmt::format("{} of {}, sum {}", left.rank(), left.size(), same ? sum[0] : -1));
  } catch (const Error& error) {
    seat.tell(std::string(name(error.code())));
  }
}

std::string cut_and_shrink() {
  const test::TwoHosts hosts;
  if (!hosts.missing().empty()) return "skip: " + hosts.missing();
  test::ForkedRanks ranks(kUneven,
                          [&](const test::Seat& seat) { go_on_after_the_cut(seat, hosts); });
  if (!ranks.wait_for_lines(1, 20s)) return "the job did not begin";
  if (const auto refusal = hosts.cut(); !refusal.empty()) return "skip: no nft here: " + refusal;
  const auto all = ranks.finish(20s);
  std::string said;
  for (const auto& told : all)
    said += fmt::format("{} ({}); ", told.lines.empty() ? "" : told.lines.back(), told.status);
  return said;
}

TEST(Hosts, cut_in_two_the_larger_part_goes_on_and_the_smaller_one_is_told) {
  const auto said = test::in_own_place(cut_and_shrink);
  if (said.starts_with("skip: ")) GTEST_SKIP() << said;
  EXPECT_EQ(
      said,
      "0 of 3, sum 7 (0); 1 of 3, sum 7 (0); 2 of 3, sum 7 (0); minority (0); minority (0); ");
}

}  // namespace
}  // namespace sinew
