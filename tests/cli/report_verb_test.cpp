// `sinew report` and `sinew compare` from outside: formats, two runs, and every kind of bad input.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "support/program.hpp"
#include "trace/format.hpp"
#include "trace/recorder.hpp"

namespace sinew::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ReportVerb : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "sinew-report-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// Two ranks that compute and allreduce 20 times.
  std::string make_run(const std::string& name, double compute_ms = 10, int ranks = 2,
                       const std::string& host = "node") {
    const auto run = path(name);
    fs::create_directories(run);
    for (int rank = 0; rank < ranks; ++rank) {
      trace::Recorder recorder({.path = run + "/" + std::to_string(rank) + ".trace"});
      auto& writer = recorder.writer();
      const auto info = [&](const std::string& text) {
        writer.note(trace::NoteKind::info, 0, text);
      };
      info("rank=" + std::to_string(rank));
      info("size=2");
      info("host=" + host);
      info("command=./train <script>alert(1)</script> ../../etc");
      writer.note(trace::NoteKind::routine, 1, "compute");
      writer.note(trace::NoteKind::routine, 2, "MPI_Allreduce");
      writer.note(trace::NoteKind::routine, 3, "iteration");
      writer.note(trace::NoteKind::communicator, 1, "world\nsize=2");
      std::uint64_t now = trace::monotonic_ns();
      for (std::uint32_t i = 0; i < 20; ++i) {
        const auto begin = now;
        const auto add = [&](std::uint16_t routine, double ms, std::uint64_t bytes) {
          Event event;
          event.kind = EventKind::call;
          event.operation = routine;
          event.communicator = routine == 2 ? 1 : 0;
          event.sequence = routine == 2 ? i + 1 : i;
          event.bytes = bytes;
          event.begin_ns = routine == 3 ? begin : now;
          now = routine == 3 ? now : now + static_cast<std::uint64_t>(ms * 1e6);
          event.end_ns = now;
          recorder.on_event(event);
        };
        add(1, compute_ms + 0.1 * (i % 3), 0);
        add(2, 2, 1 << 20);
        add(3, 0, 0);
      }
    }
    return run;
  }
  std::string folder_;
};

std::string text_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_F(ReportVerb, shows_text_of_at_most_80_columns_with_bars) {
  const auto ran = sinew({"report", make_run("a")});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_LE(widest_line(ran.out), 80U) << ran.out;
  for (const auto* const part : {"Where the time went", "####", "compute", "Phases",
                                 "MPI_Allreduce", "iterations, as the program marked them"})
    EXPECT_TRUE(has(ran.out, part)) << part << '\n' << ran.out;
}

TEST_F(ReportVerb, every_format_has_the_figures_of_the_json) {
  const auto run = make_run("a");
  const auto ran =
      sinew({"report", run, "--format", "html,md,json,csv,text,profile-json", "-o", path("out")});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const auto json = Json::parse(text_of(path("out/report.json")));
  EXPECT_EQ(json["schema"], "sinew-report");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["iterations"].size(), 20U);
  EXPECT_EQ(json["split"]["compute_s"].is_number(), true);
  EXPECT_TRUE(has(text_of(path("out/report.md")), "## Phases"));
  EXPECT_EQ(lines_of(text_of(path("out/iterations.csv"))).size(), 21U);
  const auto page = text_of(path("out/report.html"));
  EXPECT_LT(page.size(), 500'000U);
  EXPECT_FALSE(has(page, "<script>alert")) << "a name became part of the page";
}

TEST_F(ReportVerb, two_runs_are_before_and_after) {
  const auto ran = sinew({"report", make_run("a"), make_run("b", 15), "--format", "md"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "Before and after")) << ran.out;
  EXPECT_TRUE(has(ran.out, "worse")) << ran.out;
}

TEST_F(ReportVerb, repeats_have_a_mean_and_other_configurations_are_never_averaged) {
  const auto a = make_run("a"), b = make_run("b"), c = make_run("c");
  const auto ran = sinew({"report", a, b, c, "--format", "md"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "3 runs of one configuration")) << ran.out;
  make_run("all/1");
  make_run("all/2", 10, 1);
  expect_error({"report", path("all")}, 2, "different configurations, which have no mean");
}

TEST_F(ReportVerb, compare_exits_5_over_its_limit) {
  const auto a = make_run("a"), same = make_run("same"), slow = make_run("slow", 12);
  EXPECT_EQ(sinew({"compare", a, same, "--fail-over", "5%"}).status, 0);
  const auto ran = sinew({"compare", a, slow, "--fail-over", "5%"});
  EXPECT_EQ(ran.status, 5) << ran.out;
  EXPECT_TRUE(has(ran.err, "iteration is 16.")) << ran.err;
  EXPECT_LE(widest_line(ran.out), 80U) << ran.out;
  EXPECT_EQ(sinew({"compare", a, slow, "--fail-over", "0.3"}).status, 0);
  EXPECT_EQ(sinew({"compare", a, slow}).status, 0) << "only told";
  EXPECT_EQ(Json::parse(sinew({"compare", a, slow, "--json"}).out)["schema"], "sinew-comparison");
  expect_error({"compare", a, slow, "--fail-over", "much"}, 2, "'much' is no share");
}

TEST_F(ReportVerb, opens_the_page_or_says_where_it_is) {
  const auto run = make_run("a");
  ::setenv("BROWSER", "cat", 1);
  const auto shown = sinew({"report", run, "--open"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_TRUE(has(shown.out, "<!doctype html>"));
  ::setenv("BROWSER", "no-such-browser", 1);
  const auto missing = sinew({"report", run, "--open"});
  EXPECT_EQ(missing.status, 3);
  EXPECT_TRUE(has(missing.err, "report.html")) << missing.err;
  ::unsetenv("BROWSER");
}

TEST_F(ReportVerb, links_are_labelled_as_stated_or_modelled) {
  const auto run = make_run("a");
  const auto json = Json::parse(sinew({"report", run, "--link", "25GB/s", "--json"}).out);
  EXPECT_DOUBLE_EQ(json["link"]["bytes_per_s"]["value"], 25e9);
  EXPECT_EQ(json["link"]["bytes_per_s"]["source"], "assumed");
  const auto modelled =
      Json::parse(sinew({"report", run, "--net", "alpha=5us,bw=25GB/s", "--json"}).out);
  EXPECT_FALSE(modelled["model"]["rows"].empty());
  EXPECT_FALSE(modelled["model"]["scaling"].empty());
  expect_error({"report", run, "--link", "fast"}, 2, "fast");
  expect_error({"report", run, "--net", "no.toml"}, 1, "no.toml");
}

TEST_F(ReportVerb, a_folder_without_traces_is_named) {
  expect_error({"report", path("none")}, 2, "none: No such file");
  fs::create_directories(path("empty"));
  expect_error({"report", path("empty")}, 2, "empty has no traces");
}

TEST_F(ReportVerb, what_is_no_trace_is_left_out_and_the_rest_is_shown) {
  const auto run = make_run("a");
  std::ofstream(run + "/broken.trace") << "nothing";
  const auto ran = sinew({"report", run});
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(has(ran.err, "broken.trace")) << ran.err;
  EXPECT_TRUE(has(ran.out, "2 ranks spent")) << ran.out;
}

TEST_F(ReportVerb, a_trace_of_a_newer_version_is_refused_by_its_number) {
  const auto run = make_run("a");
  for (const auto* const name : {"/0.trace", "/1.trace"}) {
    std::fstream file(run + name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(sizeof(trace::BlockHeader) + 8);
    const std::uint32_t newer = 9;
    file.write(reinterpret_cast<const char*>(&newer), sizeof newer);
  }
  const auto ran = sinew({"report", run});
  EXPECT_EQ(ran.status, 2);
  EXPECT_TRUE(has(ran.err, "version 9")) << ran.err;
  EXPECT_TRUE(has(ran.err, "none of the 2 traces")) << ran.err;
}

TEST_F(ReportVerb, missing_ranks_are_said_and_waiting_is_not_known) {
  const auto run = make_run("a");
  fs::remove(run + "/1.trace");
  const auto ran = sinew({"report", run});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "traces of 1 ranks, but the job had 2")) << ran.out;
  EXPECT_TRUE(has(ran.out, "not known")) << ran.out;
  EXPECT_TRUE(has(ran.out, "not captured, because")) << ran.out;
}

TEST_F(ReportVerb, a_run_without_communication_says_so_and_never_zero) {
  const auto run = path("quiet");
  fs::create_directories(run);
  {
    trace::Recorder recorder({.path = run + "/0.trace"});
    recorder.writer().note(trace::NoteKind::info, 0, "rank=0");
    recorder.writer().note(trace::NoteKind::info, 0, "size=1");
    recorder.writer().note(trace::NoteKind::routine, 1, "MPI_Comm_rank");
    Event event;
    event.kind = EventKind::call;
    event.operation = 1;
    event.begin_ns = trace::monotonic_ns();
    event.end_ns = event.begin_ns + 100;
    recorder.on_event(event);
  }
  const auto ran = sinew({"report", run});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "No communication was captured: the 1 recorded calls ask or compute"))
      << ran.out;
  EXPECT_TRUE(has(ran.out, "not captured")) << ran.out;
  EXPECT_FALSE(has(ran.out, "0.0 %  of the time in communication")) << ran.out;
  EXPECT_EQ(sinew({"report", run, "--format", "html"}).status, 0);
}

TEST_F(ReportVerb, bench_records_a_trace_that_can_be_reported) {
  const auto ran = sinew({"bench", "allreduce", "-p", "2", "-b", "64K", "-e", "64K", "--rounds",
                          "1", "--budget", "0.05", "--trace", path("bench")});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto json = Json::parse(sinew({"report", path("bench"), "--json"}).out);
  EXPECT_EQ(json["ranks"].size(), 2U);
  ASSERT_FALSE(json["algorithms"].empty()) << json.dump(1);
  EXPECT_EQ(json["algorithms"][0]["routine"], "allreduce");
  EXPECT_TRUE(json["waited_share"].is_number()) << "arrivals of our own ranks are compared";
  expect_error({"bench", "allreduce", "-p", "2,4", "--trace", path("x")}, 2, "one rank count");
}

}  // namespace
}  // namespace sinew::test
