// The run that the first documents describe. Built as traces its figures are consistent; stated as
// the documents do, each one is objected to. docs/seeds.md has the same numbers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include <sinew/error.hpp>
#include "report/report_page.hpp"
#include "report/stated.hpp"
#include "support/program.hpp"

namespace sinew::report {
namespace {

std::string file_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string stated_path() { return std::string(SINEW_SOURCE_DIR) + "/examples/seeds/stated.toml"; }

class Seeds : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-seeds-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder() = pattern;
    const auto made = test::run({SINEW_SEED_TRACE, pattern});
    ASSERT_EQ(made.status, 0) << made.err;
    std::vector<trace::Trace> traces;
    for (int rank = 0; rank < 8; ++rank)
      traces.push_back(trace::read_trace_file(pattern + "/rank" + std::to_string(rank) + ".trace"));
    const auto profile = trace::summarize_in_place(traces);
    summary() = summarize(profile, traces, {.network = {}, .link_bytes_per_s = 25e9});
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder()); }
  static std::string& folder() {
    static std::string path;
    return path;
  }
  static Summary& summary() {
    static Summary value;
    return value;
  }
  static const RoutineSummary& routine(std::string_view name) {
    for (const auto& one : summary().routines)
      if (one.name == name) return one;
    throw std::runtime_error("no such routine");
  }
  static const StepPhase& phase(std::size_t i) { return summary().steps.phases.at(i); }
};

TEST_F(Seeds, has_no_contradiction) {
  EXPECT_TRUE(contradictions(summary()).empty()) << contradictions(summary())[0];
}

TEST_F(Seeds, n01_twelve_sparse_iterations) {
  ASSERT_EQ(summary().steps.phases.size(), 2U);
  EXPECT_EQ(phase(0).name, "dense");
  EXPECT_EQ(phase(0).iterations, 128U);
  EXPECT_EQ(phase(1).name, "sparse");
  EXPECT_EQ(phase(1).iterations, 12U);
  EXPECT_EQ(summary().steps.iterations.size(), 140U);
}

TEST_F(Seeds, n02_every_call_is_there) {
  EXPECT_EQ(routine("MPI_Allreduce (dense)").calls, 1024U);
  EXPECT_EQ(routine("MPI_Allreduce (region)").calls, 8U);
  EXPECT_EQ(routine("MPI_Alltoall").calls, 96U);
  EXPECT_EQ(routine("MPI_Allgather").calls, 96U);
  EXPECT_EQ(routine("MPI_Allgatherv (final)").calls, 88U);
  EXPECT_EQ(routine("MPI_Allgatherv (recompute)").calls, 8U);
  for (const auto* const name :
       {"MPI_Isend (index)", "MPI_Isend (value)", "MPI_Irecv (index)", "MPI_Irecv (value)"})
    EXPECT_EQ(routine(name).calls, 672U);
}

TEST_F(Seeds, n03_the_range_holds_all_sizes) {
  const auto& spread = routine("MPI_Allgatherv (final)").spread;
  EXPECT_EQ(spread.least, 150'000U);
  EXPECT_EQ(spread.mode, 280'000U);
  EXPECT_EQ(spread.most, 5'960'000U);
  EXPECT_NEAR(spread.mean, 1.48e6, 1);
}

TEST_F(Seeds, n04_distinct_sizes) {
  const auto& gathered = routine("MPI_Allgatherv (final)");
  EXPECT_EQ(gathered.spread.distinct, 50U);
  const auto table = size_table(gathered);
  ASSERT_EQ(table.rows.size(), 10U);
  EXPECT_EQ(table.rows[0][0], "280000");
  EXPECT_EQ(table.rows[0][1], "25");
  EXPECT_EQ(table.rows[0][2], "28.4 %");
  EXPECT_EQ(table.rows[3][0], "1140000");
  EXPECT_EQ(table.rows[3][1], "3");
}

TEST_F(Seeds, n05_n06_messages_are_skewed) {
  const auto& spread = routine("MPI_Isend (index)").spread;
  EXPECT_EQ(spread.mode, 280'000U);
  EXPECT_NEAR(spread.mean, 305.46e6 / 672, 1);
  EXPECT_EQ(spread.least, 60'000U);
  EXPECT_EQ(spread.most, 2'280'000U);
  EXPECT_LT(static_cast<double>(spread.median), spread.mean) << "right-skewed";
}

TEST_F(Seeds, n07_reductions_of_single_messages) {
  const auto& gathered = routine("MPI_Allgatherv (final)");
  ASSERT_TRUE(gathered.reduction);
  EXPECT_NEAR(gathered.reduction->first, 18.5, 0.05);
  EXPECT_NEAR(gathered.reduction->second, 735.2, 0.1);
  EXPECT_NEAR(routine("MPI_Isend (index)").reduction->second, 1838, 1);
}

TEST_F(Seeds, n08_what_a_rank_sends) {
  ASSERT_TRUE(summary().compression);
  const auto& compression = *summary().compression;
  EXPECT_NEAR(compression.dense_wire.value / 1e6, 193.0, 0.05);
  EXPECT_NEAR(compression.sparse_wire.value / 1e6, 16.7, 0.05);
  EXPECT_NEAR(compression.ratio(), 11.5, 0.05);
}

TEST_F(Seeds, n09_density) {
  const auto& compression = *summary().compression;
  ASSERT_TRUE(compression.density);
  EXPECT_NEAR(compression.density->value, 0.0537, 0.0005);
  EXPECT_NE(compression.density->source, Source::measured);
  EXPECT_DOUBLE_EQ(compression.target_density->value, 0.02);
  std::set<std::string> ids;
  for (const auto& finding : summary().findings) ids.insert(finding.id);
  EXPECT_TRUE(ids.contains("density-not-held"));
  EXPECT_TRUE(ids.contains("dense-phase"));
  EXPECT_TRUE(ids.contains("assumption"));
}

TEST_F(Seeds, n10_n19_phases_are_compared_by_iteration) {
  EXPECT_NEAR(phase(1).wire_bytes / phase(0).wire_bytes, 1 / 11.5, 0.001);
  EXPECT_NEAR(phase(0).split.elapsed_s, 3.0252, 0.001);
  EXPECT_NEAR(phase(1).split.elapsed_s, 0.1, 1e-4);
}

TEST_F(Seeds, n11_n13_totals_are_sums_in_bytes) {
  std::uint64_t dense = 0, given = 0;
  for (const auto& one : summary().routines)
    for (const auto& row : one.sizes) {
      if (one.name == "MPI_Allreduce (dense)") dense += row.moved;
      if (!one.name.starts_with("MPI_Irecv")) given += row.moved;
    }
  EXPECT_EQ(dense, 112'924'950'528U);
  EXPECT_EQ(summary().given, given) << "a message counts once, not at both ends";
}

TEST_F(Seeds, n12_n14_n15_n16_n17_times_add_up) {
  double iterations = 0;
  for (const auto& one : summary().steps.iterations) {
    iterations += one.split.elapsed_s;
    const auto& s = one.split;
    EXPECT_NEAR(s.compute_s + s.data_s + s.compress_s + s.moving_s + s.waiting_s + s.other_s(),
                s.elapsed_s, 1e-6);
  }
  EXPECT_NEAR(iterations, 388.42, 0.001);
  EXPECT_NEAR(summary().elapsed_s, 388.42, 0.001);
  const auto share = [](const Split& split) { return split.exposed_s() / split.elapsed_s; };
  const auto all = share(summary().split);
  EXPECT_GE(all, std::min(share(phase(0).split), share(phase(1).split)) - 1e-9);
  EXPECT_LE(all, std::max(share(phase(0).split), share(phase(1).split)) + 1e-9);
  double shares = 0;
  for (const auto& one : summary().routines) shares += one.share;
  EXPECT_NEAR(shares, 1, 1e-9);
}

TEST_F(Seeds, n20_n25_times_and_the_link_are_labelled) {
  EXPECT_EQ(summary().times, Source::assumed);
  ASSERT_TRUE(summary().link);
  EXPECT_EQ(summary().link->bytes_per_s.source, Source::assumed);
  for (const auto& row : summary().bandwidth)
    EXPECT_NE(row.bytes_per_s.source, Source::measured) << row.routine;
  EXPECT_FALSE(summary().compression->dense_step_s) << "no assumed time passes for measured";
  EXPECT_NE(to_json(summary()).find("\"times\": \"assumed\""), std::string::npos);
  for (const auto& text :
       {to_html(summary(), "t", "c"), to_markdown(summary(), "t", "c"), to_text(summary(), "t")})
    EXPECT_NE(text.find("assumed"), std::string::npos);
  EXPECT_EQ(summary().hosts.size(), 2U);
}

TEST_F(Seeds, n22_the_bottleneck_is_one_split) {
  const auto& split = summary().split;
  EXPECT_GT(split.compute_s, split.exposed_s());
  EXPECT_NEAR(
      split.compute_s + split.data_s + split.compress_s + split.exposed_s() + split.other_s(),
      split.elapsed_s, 1e-6);
}

TEST_F(Seeds, every_stated_figure_is_objected_to) {
  const auto checked = check_stated(file_text(stated_path()), "stated.toml", to_json(summary()));
  for (const auto& held : checked.held) ADD_FAILURE() << "nothing objects to: " << held;
  std::set<std::string> numbers;
  for (const auto& objection : checked.objections)
    numbers.insert(objection.name.substr(0, objection.name.find(' ')));
  for (int i = 1; i <= 25; ++i)
    EXPECT_TRUE(numbers.contains(std::to_string(i))) << "no statement of number " << i;
  EXPECT_TRUE(numbers.contains("003"));
}

TEST_F(Seeds, the_report_lists_the_objections) {
  const auto ran = test::sinew({"report", folder(), "--stated", stated_path(), "--format", "md"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(test::has(ran.out, "Stated figures"));
  EXPECT_TRUE(test::has(ran.out, "is 112.925, not 110.28")) << ran.out;
}

TEST(Stated, right_figures_pass) {
  const auto checked = check_stated(R"(
[[statement]]
kind = "sum"
parts = [1, 2]
total = 3
[[statement]]
kind = "product"
factors = [1024, 0.110278272]
result = 112.92
[[statement]]
kind = "quotient"
of = 672
by = 56
result = 12
[[statement]]
kind = "same"
values = [1.0, 1.005]
[[statement]]
kind = "sizes"
least = 0.15
most = 5.96
mode = 0.28
mean = 1.48
total = 130.24
count = 88
distinct = 50
rows = [[0.28, 25], [0.15, 2]]
[[statement]]
kind = "shape"
least = 0
most = 10
median = 5.1
says = "uniform"
[[statement]]
kind = "mean"
parts = [1, 3]
weights = [1, 1]
result = 2
[[statement]]
kind = "rate"
bytes = 1e9
seconds = 0.2
capacity = 25e9
says = "measured"
[[statement]]
kind = "scaling"
ranks = [8, 64]
times = [1, 2]
says = "logarithmic"
[[statement]]
kind = "columns"
names = ["a"]
values = [1]
[[statement]]
kind = "exclusive"
claims = ["bound"]
[[statement]]
kind = "cause"
before = 1
after = 2
causes = ["one"]
[[statement]]
kind = "trend"
values = [1, 2]
says = "rises"
[[statement]]
kind = "ratio"
ratio = 1
says = "none"
[[statement]]
kind = "loss"
values = [2.3, 0.4]
classes = 10
[[statement]]
kind = "most"
value = 1
limit = 2
[[statement]]
kind = "figure"
at = "/x/0"
value = 4
)",
                                    "right.toml", R"({"x": [4]})");
  EXPECT_TRUE(checked.objections.empty()) << checked.objections[0].what;
  EXPECT_EQ(checked.held.size(), statement_kinds().size()) << "every kind is tried";
}

void expect_refused(const std::string& toml, const std::string& part) {
  try {
    (void)check_stated(toml, "a.toml", "{}");
    FAIL() << toml;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Stated, bad_documents_are_refused_with_their_line) {
  expect_refused("", "no [[statement]]");
  expect_refused("[[statement", "a.toml:1");
  expect_refused("[[statement]]\nkind = \"summ\"", "did you mean 'sum'?");
  expect_refused("[[statement]]\nkind = \"sum\"\ntotal = 1", "'parts' must be a list of numbers");
  expect_refused("[[statement]]\nkind = \"sum\"\nparts = [\"a\"]\ntotal = 1", "a.toml:1");
  expect_refused("[[statement]]\nkind = \"quotient\"\nof = 1\nby = 0\nresult = 1", "'by' is 0");
  expect_refused("[[statement]]\nkind = \"figure\"\nat = \"/no\"\nvalue = 1", "nothing at '/no'");
}

}  // namespace
}  // namespace sinew::report
