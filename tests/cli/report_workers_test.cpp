// "The run on more workers" of `sinew report`: the figures of `sinew predict`, in every format.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "support/program.hpp"
#include "support/recorded_run.hpp"
#include "trace/recorder.hpp"

namespace sinew::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;
constexpr const char* kNet = "alpha=5us,bw=1GB/s";
constexpr const char* kTitle = "The run on more workers";

std::string text_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// One call, which is enough for a report.
void leave_trace(const fs::path& folder) {
  trace::Recorder recorder({.path = (folder / "rank-0.trace").string()});
  recorder.writer().note(trace::NoteKind::info, 0, "rank=0");
  recorder.writer().note(trace::NoteKind::routine, 1, "allreduce");
  Event event;
  event.kind = EventKind::call;
  event.operation = 1;
  event.bytes = 4096;
  event.begin_ns = trace::monotonic_ns();
  event.end_ns = event.begin_ns + 1000000;
  recorder.on_event(event);
}

fs::path recorded() {
  const auto folder = record_run("report_workers_run");
  leave_trace(folder);
  return folder;
}

Json reported(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "report");
  arguments.emplace_back("--json");
  const auto ran = sinew(arguments);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return Json::parse(ran.out);
}

Json predicted(const fs::path& run, const std::string& net, const std::string& workers) {
  const auto ran = sinew({"predict", run, "--net", net, "--workers", workers, "--json"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  return Json::parse(ran.out);
}

std::string network_with_bounds() {
  const auto path = (fs::path(testing::TempDir()) / "report_workers_net.toml").string();
  std::ofstream(path) << "format = \"sinew-net\"\nversion = 1\n[link]\none_way = [ { alpha_us = "
                         "20, gbytes_per_s = 2 } ]\n"
                         "[error]\nlow_factor = 0.75\nhigh_factor = 1.5\n";
  return path;
}

TEST(ReportWorkers, figures_are_those_of_predict_number_for_number) {
  const auto run = recorded();
  for (const auto& net : {std::string(kNet), network_with_bounds()}) {
    const auto report = reported({run, "--net", net, "--workers", "2..64"});
    EXPECT_EQ(report["more_workers"], predicted(run, net, "2..64"));
    EXPECT_EQ(report["more_workers"]["source"], "modelled");
    EXPECT_EQ(report["more_workers"]["measured"]["source"], "measured");
  }
}

TEST(ReportWorkers, parts_add_up_to_the_step) {
  const auto report = reported({recorded(), "--net", kNet, "--workers", "2..64"});
  for (const auto& step : report["more_workers"]["results"]) {
    double sum = 0;
    for (const auto* part : {"compute_us", "straggling_us", "select_us", "slowed_us", "exposed_us"})
      sum += step[part].get<double>();
    EXPECT_NEAR(sum, step["step_us"].get<double>(), 1e-9 * sum) << step;
  }
}

TEST(ReportWorkers, every_format_has_the_section_and_its_label) {
  const auto run = recorded();
  const auto out = fs::path(testing::TempDir()) / "report_workers_out";
  fs::remove_all(out);
  const auto ran = sinew({"report", run, "--net", kNet, "--workers", "2..64", "--format",
                          "html,md,text,csv", "-o", out});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto predict = predicted(run, kNet, "2..64");
  for (const auto* name : {"report.html", "report.md", "report.txt"}) {
    const auto text = text_of(out / name);
    const auto at = text.find(kTitle);
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_NE(text.find("Modelled", at), std::string::npos) << name;
    EXPECT_NE(text.find("Scaling limit", at), std::string::npos) << name;
    EXPECT_NE(text.find("Measured at 2 workers", at), std::string::npos) << name;
  }
  EXPECT_LE(widest_line(text_of(out / "report.txt")), 80U);
  EXPECT_EQ(lines_of(text_of(out / "more_workers.csv")).size(), 1 + predict["results"].size());

  const auto page = text_of(out / "report.html");
  EXPECT_LT(page.size(), 500'000U);
  const std::string mark = "id=\"data\">";
  const auto begin = page.find(mark) + mark.size();
  const auto drawn = Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  auto results = predict["results"];
  for (auto& step : results) step.erase("schemes");
  EXPECT_EQ(drawn["more_workers"]["results"], results) << "the chart draws other figures";
}

TEST(ReportWorkers, counts_double_from_those_of_the_run_to_1024) {
  const auto report = reported({recorded(), "--net", kNet});
  std::vector<int> counts;
  for (const auto& step : report["more_workers"]["results"]) counts.push_back(step["workers"]);
  EXPECT_EQ(counts, (std::vector<int>{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}));
}

TEST(ReportWorkers, what_cannot_be_predicted_is_reported_all_the_same) {
  const auto run = recorded();
  EXPECT_TRUE(reported({run})["more_workers"].is_null()) << "over no network";
  fs::remove(run / "result.json");
  const auto report = reported({run, "--net", kNet});
  EXPECT_TRUE(report["more_workers"].is_null());
  EXPECT_TRUE(has(report["notes"].dump(), "the run has not ended")) << report["notes"];
  fs::remove(run / "run.json");  // no training run at all
  EXPECT_FALSE(has(reported({run, "--net", kNet})["notes"].dump(), "more workers"));
}

TEST(ReportWorkers, mistakes_are_one_line) {
  const auto run = recorded().string();
  expect_error({"report", run, "--workers", "8"}, 2, "--net");
  expect_error({"report", run, "--net", kNet, "--workers", "9..8"}, 2, "an empty range");
}

}  // namespace
}  // namespace sinew::test
