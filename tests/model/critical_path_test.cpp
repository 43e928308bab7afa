// The longest chain: it has no holes, its length is the time, and it names who was waited for.
#include "model/critical_path.hpp"

#include <gtest/gtest.h>

#include "model/network_file.hpp"
#include "report/explain.hpp"
#include "support/worlds.hpp"

namespace sinew {
namespace {

std::vector<Activity> activities_of(Collective collective, std::string_view name, int size,
                                    double bytes, const Network& network,
                                    Simulated* end = nullptr) {
  std::vector<Activity> all;
  const auto outcome =
      simulate(workload_of(find_algorithm(collective, name), {.size = size, .node_of = {}}, bytes),
               network, {.collapse = false, .record = &all});
  if (end != nullptr) *end = outcome;
  return all;
}

// Every step of it begins when the one before ends, from the first moment to the last.
TEST(CriticalPath, of_every_algorithm_reaches_from_begin_to_end_without_a_hole) {
  int checked = 0;
  for (const auto& algorithm : algorithms())
    for (const int size : {2, 3, 8, 13})
      for (const auto& setting : settings(algorithm, size))
        for (const double eager : {-1.0, 2e6}) {
          auto network = parse_network_line("alpha=5us,bw=25GB/s,gamma=10GB/s,copy=20GB/s");
          network.eager_bytes = eager;
          network.board =
              BoardCosts{.wait_ps = 1e5, .publish = Curve(0, 20), .gather = Curve(0, 30)};
          const Place place{.size = size,
                            .root = setting.root,
                            .segments = setting.segments,
                            .node_of = setting.node_of};
          std::vector<Activity> all;
          const auto outcome = simulate(workload_of(algorithm, place, 1'000'003), network,
                                        {.collapse = false, .record = &all});
          const auto path = critical_path(all);
          ASSERT_FALSE(path.steps.empty()) << to_string(setting);
          EXPECT_EQ(path.end, outcome.end.at) << to_string(setting);
          Picoseconds covered = 0, before = 0;
          for (const auto& step : path.steps) {
            EXPECT_GE(step.end, before) << to_string(setting);
            covered += step.end - std::max(step.begin, before);
            before = step.end;
          }
          EXPECT_EQ(covered, path.end) << to_string(setting) << " eager " << eager;
          ++checked;
        }
  EXPECT_GT(checked, 300);
}

TEST(CriticalPath, of_a_binomial_broadcast_is_one_message_a_level) {
  const auto network = parse_network_line("alpha=5us,bw=25GB/s");
  const auto path =
      critical_path(activities_of(Collective::broadcast, "binomial", 8, 1e6, network));
  ASSERT_EQ(path.steps.size(), 3U);
  EXPECT_EQ(path.steps[0].rank, 0);
  for (const auto& step : path.steps) EXPECT_EQ(step.op, Op::send);
  EXPECT_EQ(path.waiting.front().time, 2 * 45'000'000);  // a leaf, for its parent
}

TEST(CriticalPath, a_late_rank_is_who_is_waited_for) {
  auto network = parse_network_line("alpha=5us,bw=25GB/s");
  network.topology.ranks.push_back({.ranks = RankRanges::parse("2"), .delay_ps = 1e9});
  const auto path =
      critical_path(activities_of(Collective::allreduce, "recursive_doubling", 4, 8, network));
  EXPECT_EQ(path.waiting.front().awaited, 2);
  EXPECT_GE(path.waiting.front().time, 900'000'000);
  EXPECT_TRUE(path.steps.front().rank == 2 || path.steps.front().peer == 2);
  EXPECT_EQ(path.steps.front().begin, 1'000'000'000);
  EXPECT_NE(report::explain_in_words(path).find("until rank"), std::string::npos);
}

TEST(CriticalPath, words_and_drawings_fit_a_terminal) {
  const auto network = parse_network_line("alpha=5us,bw=25GB/s,gamma=10GB/s");
  const auto all = activities_of(Collective::allreduce, "ring", 40, 1e8, network);
  const auto path = critical_path(all);
  for (const auto& text :
       {report::explain_in_words(path), report::explain_as_text(path, all, 79)}) {
    std::size_t width = 0;
    for (const char c : text) {
      width = c == '\n' ? 0 : width + 1;
      ASSERT_LE(width, 80U) << text;
    }
    EXPECT_FALSE(text.empty());
  }
  EXPECT_EQ(report::ranks_shown(path, all, 16).size(), 16U);
  const auto svg = report::explain_as_svg(path, all, "a <title>");
  EXPECT_NE(svg.find("arrow join"), std::string::npos);
  EXPECT_NE(svg.find("a &lt;title&gt;"), std::string::npos);
}

}  // namespace
}  // namespace sinew
