// Other tools' profiles, each into the model of our own, whole and damaged.
#include <gtest/gtest.h>

#include <sinew/error.hpp>
#include "imports/import.hpp"
#include "support/program.hpp"
#include "support/sample.hpp"

namespace sinew::imports {
namespace {

using test::has;
using test::sample;
using trace::Profile;
using trace::ProfileKey;

Profile import_text(const std::string& text, const std::string& name = "file") {
  const Source source{name, text};
  return import_profile({&source, 1});
}

std::string error_of(const std::vector<Source>& sources) {
  try {
    import_profile(sources);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  return "no error";
}

ProfileKey key_of(const std::string& routine, std::uint64_t bytes, const std::string& label = "") {
  ProfileKey key;
  key.routine = routine;
  key.bytes = bytes;
  key.label = label;
  return key;
}

bool warns(const Profile& profile, const std::string& part) {
  return std::any_of(profile.warnings.begin(), profile.warnings.end(),
                     [&](const std::string& warning) { return has(warning, part); });
}

TEST(Import, knows_formats_by_their_content) {
  EXPECT_EQ(format_of(sample("profiles/mpitrace_training_cpu.txt")), Format::mpitrace);
  EXPECT_EQ(format_of(sample("profiles/mpip_training.txt")), Format::mpip);
  EXPECT_EQ(format_of(sample("profiles/horovod_timeline.json")), Format::horovod);
  EXPECT_EQ(format_of(sample("profiles/kineto_rank0.json")), Format::kineto);
  EXPECT_EQ(format_of(sample("profiles/kineto_gloo.json")), Format::kineto);
  EXPECT_EQ(format_of(""), std::nullopt);
  EXPECT_EQ(format_of("[1, 2]"), std::nullopt);
}

TEST(Import, what_is_unknown_is_refused_with_a_hint) {
  EXPECT_TRUE(has(error_of({{"a", ""}}), "a:1: the file is empty"));
  EXPECT_TRUE(has(error_of({{"a", "hello"}}), "a:1: what is this?"));
  EXPECT_TRUE(has(error_of({{"a", "{\"x\": 1}"}}), "a:1: is JSON, but neither"));
  EXPECT_TRUE(has(error_of({{"a", "\x1F\x8B\x08"}}), "zcat a | sinew import -"));
  EXPECT_TRUE(has(error_of({}), "which files"));
  const auto mpip = sample("profiles/mpip_training.txt");
  const auto horovod = sample("profiles/horovod_timeline.json");
  EXPECT_TRUE(
      has(error_of({{"a", mpip}, {"b", horovod}}), "b:1: is of Horovod timeline, but a is"));
  EXPECT_TRUE(has(error_of({{"a", mpip}, {"b", mpip}}), "holds all ranks"));
}

TEST(MpipImport, has_calls_times_and_bytes_of_every_rank_and_site) {
  const auto profile = import_text(sample("profiles/mpip_training.txt"));
  ASSERT_EQ(profile.ranks.size(), 2U);
  EXPECT_EQ(profile.ranks[1].host, "node-b");
  EXPECT_EQ(profile.ranks[1].size, 2);
  EXPECT_EQ(profile.ranks[0].command, "./train --steps 236 ");
  EXPECT_NEAR(profile.ranks[0].elapsed_ns, 12.1e9, 1);
  EXPECT_NEAR(profile.ranks[1].communication_ns, 4.02e9, 1);
  const auto& small = profile.ranks[0].rows.at(key_of("MPI_Allreduce", 8, "site 1"));
  EXPECT_EQ(small.calls, 7316U);
  EXPECT_EQ(small.sent, 7316U * 8);
  EXPECT_NEAR(small.total_ns, 7316 * 0.321e6, 1);
  EXPECT_NEAR(small.longest_ns, 9.71e6, 1);
  EXPECT_NEAR(small.shortest_ns, 2200, 0.1);
  EXPECT_EQ(profile.routines.at("MPI_Allreduce").calls, 2 * (7316U + 236U));
  EXPECT_EQ(profile.routines.at("MPI_Barrier").bytes, 0U);
}

TEST(MpipImport, a_concise_report_has_sums_only_and_says_so) {
  auto text = sample("profiles/mpip_training.txt");
  text.resize(text.find("@--- Callsite Time statistics"));
  const auto profile = import_text(text);
  EXPECT_EQ(profile.routines.at("MPI_Allreduce").calls, 472U + 14632U);
  EXPECT_NEAR(profile.routines.at("MPI_Barrier").total_ns, 101e6, 1);
  EXPECT_TRUE(warns(profile, "concise"));
}

TEST(MpipImport, damaged_lines_are_named) {
  auto text = sample("profiles/mpip_training.txt");
  const std::string line = "Allreduce            1    1   7316";
  text.replace(text.find(line), line.size(), "Allreduce            1    1   what");
  const auto profile = import_text(text, "r.mpiP");
  EXPECT_TRUE(warns(profile, "r.mpiP:51: ")) << profile.warnings[0];
  EXPECT_TRUE(has(error_of({{"x", "@ mpiP\nnothing\n"}}), "x:2: no table"));
}

TEST(HorovodImport, has_operations_by_tensor_and_who_was_last) {
  const auto profile = import_text(sample("profiles/horovod_timeline.json"));
  ASSERT_EQ(profile.ranks.size(), 1U);
  const auto& rank = profile.ranks[0];
  EXPECT_EQ(rank.size, 3) << "ticks name three ranks";
  EXPECT_TRUE(rank.closed);
  const auto& large = rank.rows.at(key_of("ALLREDUCE", 784 * 512 * 4, "grad.dense.kernel"));
  EXPECT_EQ(large.calls, 12U);
  EXPECT_NEAR(large.total_ns, 12 * 330e3, 1);
  EXPECT_EQ(rank.rows.at(key_of("ALLREDUCE", 512 * 2, "grad.dense.bias")).calls, 12U);
  EXPECT_NEAR(rank.rows.at(key_of("MPI_ALLREDUCE", 512 * 2, "grad.dense.bias")).total_ns,
              12 * 300e3, 1);
  const auto& negotiation = profile.routines.at("NEGOTIATE_ALLREDUCE");
  EXPECT_EQ(negotiation.calls, 24U);
  EXPECT_NEAR(negotiation.waited_ns, (20 * 900 + 4 * 500) * 1e3, 1);
  EXPECT_EQ(rank.info.at("last_ready_2"), "20");
  EXPECT_EQ(rank.info.at("last_ready_1"), "4");
  EXPECT_EQ(rank.info.at("cycles"), "12");
  // Two tensors at once: the time in which any was under way, not their sum.
  EXPECT_NEAR(rank.communication_ns, 12 * 330e3, 1);
}

TEST(HorovodImport, a_timeline_cut_off_anywhere_keeps_what_had_ended) {
  const auto whole = sample("profiles/horovod_timeline.json");
  const auto all = import_text(whole).ranks[0].all.calls;
  std::uint64_t most = 0;
  for (std::size_t bytes = 1; bytes < whole.size(); bytes += 97) {
    const auto cut = whole.substr(0, bytes);
    if (format_of(cut) != Format::horovod) continue;
    try {
      const auto profile = import_text(cut, "t.json");
      EXPECT_FALSE(profile.ranks[0].closed);
      EXPECT_TRUE(warns(profile, "the file ends before its events do")) << bytes;
      EXPECT_GE(profile.ranks[0].all.calls, most);
      most = profile.ranks[0].all.calls;
    } catch (const Error& error) {
      EXPECT_EQ(most, 0U);
      EXPECT_TRUE(has(error.what(), "t.json:")) << error.what();
    }
  }
  EXPECT_GE(most, all - 3);
}

TEST(HorovodImport, one_damaged_event_costs_one_event) {
  auto text = sample("profiles/horovod_timeline.json");
  const auto at = text.find("\"ALLREDUCE\"", text.size() / 2);
  text.insert(at + 5, "\"");  // a quotation mark that was not escaped
  const auto profile = import_text(text, "t.json");
  EXPECT_TRUE(warns(profile, "that is no JSON; 1 such")) << profile.warnings[0];
  EXPECT_EQ(profile.routines.at("NEGOTIATE_ALLREDUCE").calls, 24U);
  EXPECT_GE(profile.routines.at("ALLREDUCE").calls, 22U);
}

TEST(KinetoImport, kernels_of_nccl_are_the_communication) {
  const auto zero = sample("profiles/kineto_rank0.json"),
             one = sample("profiles/kineto_rank1.json");
  const std::vector<Source> sources{{"1", one}, {"0", zero}};
  const auto profile = import_profile(sources);
  ASSERT_EQ(profile.ranks.size(), 2U);
  const auto& rank = profile.ranks[0];
  EXPECT_EQ(rank.rank, 0);
  EXPECT_EQ(rank.size, 2);
  EXPECT_EQ(rank.info.at("backend"), "nccl");
  EXPECT_EQ(rank.info.at("steps"), "3");
  EXPECT_NEAR(rank.elapsed_ns, 29e6, 1);
  EXPECT_EQ(rank.routines.size(), 2U) << "ranges around the kernels do not count again";
  const auto& reduced = rank.rows.at(key_of("nccl:allreduce", 4 << 20U, "default_pg"));
  EXPECT_EQ(reduced.calls, 3U);
  EXPECT_NEAR(reduced.total_ns, 3 * 4e6, 1);
  EXPECT_NEAR(reduced.blocked_ns, 3 * 2e6, 1) << "computing covers 2 of its 4 ms";
  EXPECT_EQ(rank.rows.at(key_of("nccl:allgatherbase", 2048, "default_pg")).calls, 3U);
  EXPECT_NEAR(rank.communication_ns, 3 * 4.2e6, 1);
  EXPECT_NEAR(profile.ranks[1].communication_ns, 3 * 3.2e6, 1);
}

TEST(KinetoImport, without_kernels_the_ranges_of_process_groups_count) {
  const auto profile = import_text(sample("profiles/kineto_gloo.json"));
  const auto& rank = profile.ranks[0];
  EXPECT_EQ(rank.rows.at(key_of("gloo:allreduce", 256 * 4 * 4 + 10 * 8)).calls, 2U);
  EXPECT_NEAR(rank.routines.at("gloo:allreduce").total_ns, 2 * 250.25e3, 1);
  EXPECT_NEAR(rank.communication_ns, 2 * 350e3, 1) << "they overlap";
  EXPECT_TRUE(warns(profile, "does not say its rank"));
}

TEST(KinetoImport, traces_of_other_runs_and_without_communication_are_refused) {
  const auto zero = sample("profiles/kineto_rank0.json");
  EXPECT_TRUE(has(error_of({{"a", zero}, {"b", zero}}), "rank 0 a second time, after a"));
  auto other = sample("profiles/kineto_rank1.json");
  other.replace(other.find("\"world_size\": 2"), 15, "\"world_size\": 4");
  EXPECT_TRUE(has(error_of({{"a", zero}, {"b", other}}), "b:1: of a run of 4 ranks"));
  EXPECT_TRUE(has(error_of({{"a", "{\"schemaVersion\": 1, \"traceEvents\": []}"}}),
                  "no communication in this trace"));
}

TEST(KinetoImport, a_trace_cut_off_says_how_much_was_read) {
  auto text = sample("profiles/kineto_rank0.json");
  text.resize(text.size() * 2 / 3);
  const auto profile = import_text(text, "k.json");
  EXPECT_TRUE(warns(profile, "the file ends before its events do; "));
  EXPECT_EQ(profile.ranks[0].routines.at("nccl:allreduce").calls, 2U);
}

}  // namespace
}  // namespace sinew::imports
