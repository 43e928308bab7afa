// `sinew import` and `sinew report` from outside.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/program.hpp"
#include "support/sample.hpp"

namespace sinew::test {
namespace {

using Json = nlohmann::json;

std::string cpu() { return sample_path("profiles/mpitrace_training_cpu.txt"); }

TEST(ImportVerb, shows_tables_and_what_they_mean_within_80_columns) {
  for (const auto* const name :
       {"mpitrace_training_cpu.txt", "mpitrace_training_gpu.txt", "mpip_training.txt",
        "horovod_timeline.json", "kineto_rank0.json", "kineto_gloo.json"}) {
    const auto ran = sinew({"import", sample_path(std::string("profiles/") + name)});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err, "");
    EXPECT_LE(widest_line(ran.out), 80U) << ran.out;
    EXPECT_TRUE(has(ran.out, "imported from ")) << ran.out;
    EXPECT_FALSE(has(ran.out, "Measured, over all ranks")) << "others measured it";
  }
  EXPECT_TRUE(has(sinew({"import", cpu()}).out, "31.5 eight-byte allreduces a step"));
}

TEST(ImportVerb, reads_standard_input) {
  const auto ran = sinew({"import", "-", "--json"}, sample("profiles/mpitrace_training_cpu.txt"));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, sinew({"import", cpu(), "--json"}).out);
}

TEST(ImportVerb, gives_json_with_findings_and_their_evidence) {
  EXPECT_EQ(Json::parse(sinew({"import", cpu(), "--format", "profile-json"}).out)["schema"],
            "sinew-profile");
  const auto json = Json::parse(sinew({"import", cpu(), "--json"}).out);
  EXPECT_EQ(json["schema"], "sinew-report");
  EXPECT_EQ(json["source"], "mpitrace");
  EXPECT_EQ(json["ranks"].size(), 16U);
  ASSERT_GE(json["findings"].size(), 1U);
  EXPECT_EQ(json["findings"][0]["id"], "allreduce-polling");
  for (const auto& finding : json["findings"]) EXPECT_FALSE(finding["evidence"].empty());
}

TEST(ImportVerb, writes_a_listing_back_as_it_was) {
  for (const auto* const name : {"cpu", "gpu"}) {
    const auto path = std::string("profiles/mpitrace_training_") + name + ".txt";
    const auto ran = sinew({"import", sample_path(path), "--format", "mpitrace-older"});
    EXPECT_EQ(ran.out, sample(path));
  }
}

TEST(ImportVerb, writes_files_where_it_is_told) {
  std::string folder = (std::filesystem::temp_directory_path() / "sinew-import-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto ran =
      sinew({"import", cpu(), "--format", "mpitrace-older", "-o", folder, "--job", "5"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.err, "mpi_profile.5.0"));
  EXPECT_EQ(run({"cat", folder + "/mpi_profile.5.0"}).out,
            sample("profiles/mpitrace_training_cpu.txt"));
  std::filesystem::remove_all(folder);
}

TEST(ImportVerb, bad_input_is_one_line_that_names_it) {
  expect_error({"import"}, 2, "file");
  expect_error({"import", "/no/such"}, 2, "/no/such: No such file");
  expect_error({"import", "/dev/null"}, 2, "/dev/null:1: the file is empty");
  expect_error({"import", SINEW_PROGRAM}, 2, ":1: what is this?");
  expect_error({"import", cpu(), sample_path("profiles/mpip_training.txt")}, 2, "one kind");
  expect_error({"import", cpu(), "--format", "mpitrac"}, 2, "did you mean 'mpitrace'?");
  expect_error({"import", cpu(), "--format", "mpitrace", "--ranks", "3"}, 2, "no calls of rank 3");
  expect_error({"import", cpu(), "--format", "mpitrace", "--ranks", "x"}, 2, "'x' is no rank");
  expect_error({"import", cpu(), "--format", "html,md"}, 2, "several files");
  expect_error({"import", cpu(), "--format", "html,pdf"}, 2, "unknown format 'pdf'");
}

TEST(ReportVerb, bad_input_is_one_line_that_names_it) {
  expect_error({"report"}, 2, "folder");
  expect_error({"report", "/no/such/folder"}, 2, "/no/such/folder");
}

}  // namespace
}  // namespace sinew::test
