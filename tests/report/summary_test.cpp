// The summary: every figure follows from the profile, and what contradicts is said.
#include "report/summary.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/report_page.hpp"

namespace sinew::report {
namespace {

using trace::Profile;
using trace::ProfileKey;
using trace::RankProfile;
using trace::Totals;

Totals totals(std::uint64_t calls, std::uint64_t sent, double ns) {
  Totals result;
  result.calls = calls;
  result.sent = result.received = sent;
  result.total_ns = ns;
  result.shortest_ns = result.longest_ns = ns / static_cast<double>(calls);
  return result;
}

// Two ranks: 100 small and 2 large allreduces each, and a message from 0 to 1.
Profile two_ranks() {
  Profile profile;
  for (const int number : {0, 1}) {
    RankProfile rank;
    rank.rank = number;
    rank.size = 2;
    rank.host = "node";
    rank.command = "./train --lr 0.1";
    rank.closed = true;
    rank.elapsed_ns = 10e9;
    rank.rows[{"MPI_Allreduce", 1, 8, -1, 0, "", ""}] = totals(100, 800, 1e9);
    rank.rows[{"MPI_Allreduce", 1, 4000, -1, 0, "", ""}] = totals(2, 8000, 2e9);
    if (number == 0) rank.rows[{"MPI_Send", 1, 500, 1, 0, "", ""}] = totals(3, 1500, 0.5e9);
    for (const auto& [key, row] : rank.rows) {
      rank.routines[key.routine].add(row);
      rank.all.add(row);
      rank.communication_ns += row.total_ns;
    }
    rank.all.resolved = 102;
    rank.all.resolved_ns = 3e9;
    rank.all.waited_ns = number == 0 ? 2e9 : 0;
    profile.ranks.push_back(rank);
  }
  sum_over_ranks(profile);
  return profile;
}

TEST(Summary, adds_up) {
  const auto summary = summarize(two_ranks());
  EXPECT_DOUBLE_EQ(summary.elapsed_s, 10);
  EXPECT_DOUBLE_EQ(summary.communication_share, 6.5 / 20);
  ASSERT_TRUE(summary.waited_share);
  EXPECT_DOUBLE_EQ(*summary.waited_share, 2.0 / 6);
  ASSERT_EQ(summary.routines.size(), 2U);
  const auto& allreduce = summary.routines[0];
  EXPECT_EQ(allreduce.name, "MPI_Allreduce");
  EXPECT_EQ(allreduce.calls, 204U);
  EXPECT_DOUBLE_EQ(allreduce.share, 6 / 6.5);
  ASSERT_EQ(allreduce.sizes.size(), 2U);
  EXPECT_EQ(allreduce.sizes[0].calls, 200U);
  EXPECT_EQ(allreduce.sizes[1].moved, 16000U);
  ASSERT_EQ(allreduce.bins.size(), 2U);
  EXPECT_EQ(allreduce.bins[1].bytes, 2048U);
  EXPECT_EQ(allreduce.spread.mode, 8U);
  EXPECT_EQ(allreduce.spread.median, 8U);
  EXPECT_DOUBLE_EQ(allreduce.spread.mean, 17600.0 / 204);
  EXPECT_EQ(allreduce.spread.distinct, 2U);
  EXPECT_DOUBLE_EQ(summary.ranks[0].moving_s(), 1.5);
  EXPECT_DOUBLE_EQ(summary.ranks[0].other_s(), 6.5);
  EXPECT_EQ(summary.matrix.sent, (std::vector<std::vector<std::uint64_t>>{{0, 1500}, {0, 0}}));
  EXPECT_TRUE(contradictions(summary).empty());
  EXPECT_NE(summary.verdict.find("2 ranks spent 32 %"), std::string::npos) << summary.verdict;
}

// As in reports that were put together by hand: each of these was printed once.
TEST(Summary, says_what_contradicts) {
  const auto broken = [](auto change) {
    auto summary = summarize(two_ranks());
    change(summary);
    return contradictions(summary).size();
  };
  EXPECT_EQ(broken([](Summary&) {}), 0U);
  EXPECT_EQ(broken([](Summary& s) { s.routines[0].spread.mode = 4; }), 1U) << "under the least";
  EXPECT_EQ(broken([](Summary& s) { s.routines[0].spread.distinct = 88; }), 1U);
  EXPECT_EQ(broken([](Summary& s) { s.routines[0].spread.mean = 1e9; }), 1U);
  EXPECT_EQ(broken([](Summary& s) { s.routines[0].calls = 88; }), 1U);
  EXPECT_EQ(broken([](Summary& s) { s.routines[0].seconds = 0.1; }), 1U);
  EXPECT_EQ(broken([](Summary& s) { s.ranks[0].waited_s = 100; }), 1U);
  EXPECT_EQ(broken([](Summary& s) { s.routines[0].bins.pop_back(); }), 1U);
  EXPECT_EQ(broken([](Summary& s) { s.routines[0].share = 1.1; }), 1U) << "shares of 118 %";
  EXPECT_EQ(broken([](Summary& s) { s.split = {.elapsed_s = 1, .compute_s = 2}; }), 1U);
  EXPECT_EQ(broken([](Summary& s) {
              s.steps.phases.push_back({.name = "dense",
                                        .iterations = 3,
                                        .split = {.elapsed_s = 1},
                                        .median_s = 1,
                                        .longest_s = 1});
            }),
            1U)
      << "iterations of a phase that are not there";
  EXPECT_EQ(broken([](Summary& s) {
              const Split phase{.elapsed_s = 1, .moving_s = 0.0015};
              s.steps.phases.push_back(
                  {.name = "all", .iterations = 1, .split = phase, .median_s = 1, .longest_s = 1});
              s.steps.iterations.push_back({.split = {.elapsed_s = 1, .moving_s = 0.0115}});
            }),
            1U)
      << "a whole outside of its parts";
}

TEST(Summary, of_a_profile_that_contradicts_itself_begins_with_that) {
  auto profile = two_ranks();
  profile.routines["MPI_Allreduce"].calls += 5;
  const auto summary = summarize(profile);
  ASSERT_FALSE(summary.findings.empty());
  EXPECT_EQ(summary.findings.front().id, "contradiction");
}

TEST(Summary, ranks_that_met_a_different_number_of_times_contradict) {
  auto profile = two_ranks();
  profile.communicators[1] = {"world", "0-1", 2};
  EXPECT_TRUE(summarize(profile).disagreements.empty());
  for (auto* const rows : {&profile.ranks[0].rows, &profile.rows})
    (*rows)[{"MPI_Allreduce", 1, 8, -1, 0, "", ""}].calls += 1;
  profile.routines["MPI_Allreduce"].calls += 1;
  const auto summary = summarize(profile);
  ASSERT_EQ(summary.disagreements.size(), 1U);
  EXPECT_EQ(summary.findings.front().id, "contradiction");
}

TEST(Summary, calls_that_only_ask_are_no_communication) {
  for (const auto* const routine :
       {"MPI_Comm_rank", "MPI_Comm_size", "MPI_Wtime", "MPI_Type_commit", "MPI_Get_count",
        "compute", "data.next", "iteration", "step"})
    EXPECT_FALSE(trace::is_communication(routine)) << routine;
  for (const auto* const routine : {"MPI_Send", "MPI_Waitall", "MPI_Comm_split", "MPI_Win_fence",
                                    "MPI_Get_accumulate", "MPI_Get", "allreduce", "computed_thing"})
    EXPECT_TRUE(trace::is_communication(routine)) << routine;
}

TEST(Summary, says_that_nothing_was_captured) {
  Profile profile;
  profile.ranks.emplace_back();
  const auto summary = summarize(profile);
  EXPECT_NE(summary.verdict.find("No communication was captured"), std::string::npos);
  EXPECT_FALSE(summary.waited_share);
  EXPECT_NE(to_html(summary, "t", "c").find("not known"), std::string::npos);
}

TEST(Summary, threads_at_once_are_a_note_and_no_negative_time) {
  auto profile = two_ranks();
  profile.ranks[0].communication_ns = 25e9;
  const auto summary = summarize(profile);
  EXPECT_DOUBLE_EQ(summary.ranks[0].other_s(), 0);
  ASSERT_FALSE(summary.notes.empty());
  EXPECT_NE(summary.notes.back().find("threads"), std::string::npos);
}

std::string between(const std::string& text, std::string_view begin, std::string_view end) {
  const auto from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

TEST(ReportPage, has_the_figures_of_the_json) {
  const auto summary = summarize(two_ranks());
  const auto page = to_html(summary, "run", "sinew report run");
  EXPECT_EQ(page.find("{{"), std::string::npos) << "a place was left empty";
  auto data = nlohmann::json::parse(
      between(page, "<script type=\"application/json\" id=\"data\">", "</script>"));
  auto json = nlohmann::json::parse(to_json(summary));
  EXPECT_EQ(data["charted"].size(), 2U);
  data.erase("charted");
  for (auto& routine : json["routines"]) routine.erase("sizes");
  json.erase("iterations");
  EXPECT_EQ(data, json);
  EXPECT_LT(page.size(), 500'000U);
}

TEST(ReportPage, names_from_outside_stay_text) {
  auto profile = two_ranks();
  constexpr auto kEvil = "</script><script>alert(1)</script>{{data}}|`*";
  profile.ranks[0].host = kEvil;
  profile.ranks[0].command = kEvil;
  profile.warnings.emplace_back(kEvil);
  profile.warnings.emplace_back("not \xff UTF-8");
  const auto summary = summarize(profile);
  const auto page = to_html(summary, kEvil, kEvil);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("</script><script>alert"), std::string::npos);
  const auto markdown = to_markdown(summary, kEvil, "c");
  EXPECT_EQ(markdown.find("<script"), markdown.find("\\<script") + 1) << "each is escaped";
  EXPECT_NO_THROW(nlohmann::json::parse(to_json(summary)));
}

TEST(Csv, has_every_table_and_quotes_what_needs_it) {
  auto profile = two_ranks();
  profile.ranks[0].host = "a,\"b\"";
  std::map<std::string, std::string> files;
  for (const auto& [name, text] : to_csv(summarize(profile))) files[name] = text;
  EXPECT_EQ(files.size(), 9U);
  EXPECT_NE(files["ranks.csv"].find("0,\"a,\"\"b\"\"\",true"), std::string::npos);
  EXPECT_NE(files["sizes.csv"].find("MPI_Allreduce,4000,4,16000,4\n"), std::string::npos)
      << files["sizes.csv"];
  EXPECT_EQ(files["messages.csv"], "from,to,sent_bytes\n0,0,0\n0,1,1500\n1,0,0\n1,1,0\n");
}

}  // namespace
}  // namespace sinew::report
