// mpitrace's text: both layouts come in, and go out as they came.
#include <gtest/gtest.h>

#include "imports/import.hpp"
#include "report/mpitrace_text.hpp"
#include "support/program.hpp"
#include "support/sample.hpp"

namespace sinew::imports {
namespace {

using report::MpitraceLayout;
using test::has;
using test::sample;
using trace::Profile;

Profile import_text(const std::string& text, const std::string& name = "file") {
  const Source source{name, text};
  return import_profile({&source, 1});
}

std::string export_text(const Profile& profile, MpitraceLayout layout) {
  return mpitrace_text(profile, profile.ranks[0], report::communication_ranks(profile.ranks),
                       layout);
}

std::string error_of(const std::vector<Source>& sources) {
  try {
    import_profile(sources);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

class Listing : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::string text() { return sample("profiles/" + GetParam()); }
};

TEST_P(Listing, goes_out_as_it_came_in) {
  EXPECT_EQ(export_text(import_text(text()), MpitraceLayout::older), text());
}

TEST_P(Listing, keeps_its_figures_through_todays_layout) {
  const auto today = export_text(import_text(text()), MpitraceLayout::today);
  EXPECT_NE(today, text());
  EXPECT_EQ(export_text(import_text(today), MpitraceLayout::today), today);
  EXPECT_EQ(export_text(import_text(today), MpitraceLayout::older), text());
}

TEST_P(Listing, may_stand_in_a_page_of_markdown) {
  const auto page = "# Results\n\nSome words.\n```bash\n" + text() + "```\n\nMore words.\n";
  EXPECT_EQ(export_text(import_text(page), MpitraceLayout::older), text());
}

TEST_P(Listing, may_have_the_line_ends_of_windows) {
  std::string changed;
  for (const char c : text()) changed += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(export_text(import_text(changed), MpitraceLayout::older), text());
}

TEST_P(Listing, cut_off_anywhere_is_read_or_refused_with_its_place) {
  const auto whole = text();
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 13) {
    try {
      const auto profile = import_text(whole.substr(0, bytes), "cut.txt");
      EXPECT_FALSE(profile.ranks[0].routines.empty());
    } catch (const std::exception& error) {
      EXPECT_TRUE(has(error.what(), "cut.txt:")) << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mpitrace, Listing,
                         testing::Values("mpitrace_training_cpu.txt", "mpitrace_training_gpu.txt"),
                         [](const auto& listing) { return listing.index == 0 ? "cpu" : "gpu"; });

TEST(MpitraceImport, has_every_figure_of_the_listing) {
  const auto profile = import_text(sample("profiles/mpitrace_training_cpu.txt"));
  ASSERT_EQ(profile.ranks.size(), 16U);
  EXPECT_EQ(profile.source, "mpitrace");
  const auto& rank = profile.ranks[0];
  EXPECT_EQ(rank.size, 16);
  EXPECT_EQ(rank.host, "thetagpu24");
  EXPECT_EQ(rank.routines.size(), 7U);
  EXPECT_EQ(rank.routines.at("MPI_Allreduce").calls, 8161U);
  EXPECT_NEAR(rank.routines.at("MPI_Allreduce").total_ns, 10.575e9, 1);
  EXPECT_NEAR(rank.communication_ns, 10.602e9, 1);
  EXPECT_NEAR(rank.elapsed_ns, 15.548e9, 1);
  EXPECT_NEAR(*info_number(rank, "user_s"), 131.483, 1e-9);
  EXPECT_NEAR(*info_number(rank, "resident_kib"), 1655.0 * 1024, 1e-6);
  trace::ProfileKey key;
  key.routine = "MPI_Allreduce";
  key.bytes = 8;
  EXPECT_EQ(rank.rows.at(key).calls, 7428U);
  EXPECT_EQ(profile.rows.at(key).bytes, 7428U * 8);
  key.bytes = 4719156;
  EXPECT_EQ(rank.rows.at(key).calls, 236U);
  EXPECT_NEAR(profile.ranks[5].communication_ns, 11.834e9, 1) << "the summary has more digits";
  EXPECT_EQ(profile.ranks[13].info.at("switches"), "169615");
  EXPECT_TRUE(profile.ranks[13].rows.empty());
}

TEST(MpitraceImport, reads_what_today_adds) {
  const auto profile = import_text(sample("profiles/mpitrace_today.txt"));
  ASSERT_EQ(profile.ranks.size(), 2U);
  const auto& rank = profile.ranks[0];
  EXPECT_EQ(rank.routines.size(), 2U) << "the profile by communicator is no second one";
  EXPECT_EQ(rank.routines.at("MPI_Allreduce").calls, 3U);
  EXPECT_EQ(rank.info.at("cpu"), "3");
  EXPECT_EQ(rank.host, "node-a");
  EXPECT_NEAR(rank.communication_ns, 0.020e9, 1e3);
  EXPECT_NEAR(profile.ranks[1].communication_ns, 0.025e9, 1e6);
  EXPECT_EQ(profile.ranks[1].info.count("switches"), 0U) << "what was not measured is not 0";
  EXPECT_TRUE(std::any_of(profile.warnings.begin(), profile.warnings.end(),
                          [](const auto& text) { return has(text, "barriers"); }));
}

TEST(MpitraceImport, joins_the_files_of_a_job) {
  const auto first = sample("profiles/mpitrace_training_gpu.txt");
  auto profile = import_text(first);
  // What rank 2's own file would look like.
  profile.ranks[2].routines = profile.ranks[0].routines;
  profile.ranks[2].rows = profile.ranks[0].rows;
  const auto second =
      mpitrace_text(profile, profile.ranks[2], report::communication_ranks(profile.ranks));
  const std::vector<Source> sources{{"b", second}, {"a", first}};
  const auto joined = import_profile(sources);
  ASSERT_EQ(joined.ranks.size(), 8U);
  EXPECT_EQ(joined.ranks[2].routines.at("MPI_Allreduce").calls, 11658U);
  EXPECT_EQ(joined.ranks[2].host, "thetagpu19");
  EXPECT_EQ(joined.routines.at("MPI_Allreduce").calls, 2 * 11658U);
  EXPECT_EQ(export_text(joined, MpitraceLayout::older), first);
}

TEST(MpitraceImport, files_of_two_jobs_are_refused) {
  const auto cpu = sample("profiles/mpitrace_training_cpu.txt");
  const auto gpu = sample("profiles/mpitrace_training_gpu.txt");
  EXPECT_TRUE(has(error_of({{"a", cpu}, {"b", gpu}}), "b:1: this is of a job of 8 ranks"));
  EXPECT_TRUE(has(error_of({{"a", cpu}, {"b", cpu}}), "b:1: rank 0 a second time, after a:1"));
}

TEST(MpitraceImport, a_line_that_makes_no_sense_is_named_and_left_out) {
  auto text = sample("profiles/mpitrace_training_cpu.txt");
  const std::string line = "MPI_Gatherv                            49";
  text.replace(text.find(line), line.size(), "MPI_Gatherv                         forty");
  const auto profile = import_text(text, "mpi_profile.1.0");
  EXPECT_TRUE(has(profile.warnings[0], "mpi_profile.1.0:11: ")) << profile.warnings[0];
  EXPECT_EQ(profile.ranks[0].routines.count("MPI_Gatherv"), 0U);
  EXPECT_EQ(profile.ranks[0].routines.size(), 6U);
}

TEST(MpitraceText, has_the_classes_of_sizes_of_mpitrace) {
  const std::pair<std::uint64_t, unsigned> by_hand[] = {{0, 0},
                                                        {1, 1},
                                                        {4, 1},
                                                        {5, 2},
                                                        {8, 2},
                                                        {9, 3},
                                                        {16, 3},
                                                        {17, 4},
                                                        {4096, 11},
                                                        {4097, 12},
                                                        {std::uint64_t{1} << 31U, 30},
                                                        {(std::uint64_t{1} << 31U) + 1, 31}};
  for (const auto& [bytes, bin] : by_hand) EXPECT_EQ(report::mpitrace_bin(bytes), bin) << bytes;
}

TEST(MpitraceText, more_than_32_ranks_have_a_histogram_that_counts_each_once) {
  Profile profile;
  for (int i = 0; i < 40; ++i) {
    trace::RankProfile rank;
    rank.rank = i;
    rank.size = 40;
    rank.communication_ns = 1e9 + 1e8 * (i % 8);
    trace::Totals one;
    one.calls = 1;
    rank.routines["MPI_Barrier"] = one;
    profile.ranks.push_back(rank);
  }
  const auto text = export_text(profile, MpitraceLayout::today);
  ASSERT_TRUE(has(text, "Histogram of times spent in MPI"));
  int ranks = 0, lines = 0;
  bool inside = false;
  for (const auto& line : test::lines_of(text)) {
    if (has(line, "time-bin"))
      inside = true;
    else if (line.empty())
      inside = false;
    else if (inside) {
      ranks += std::stoi(line.substr(12));
      ++lines;
    }
  }
  EXPECT_EQ(lines, 15);
  EXPECT_EQ(ranks, 40);
  EXPECT_EQ(import_text(text).ranks.size(), 40U);
}

}  // namespace
}  // namespace sinew::imports
