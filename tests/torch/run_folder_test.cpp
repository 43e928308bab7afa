// What a run leaves behind, and how it ends when it is not left alone: Ctrl-C, a full disk, a
// worker that is killed.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <random>

#include "support/program.hpp"
#include "support/train_runs.hpp"
#include "support/trials.hpp"
#include "trace/profile.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using test::RunFolder;
using Words = std::vector<std::string>;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words tiny(const RunFolder& folder, int workers, const Words& more) {
  return with({"train", "--model", "tiny", "--threads", "1", "-p", std::to_string(workers), "-o",
               folder.name(), "--json"},
              more);
}

TEST(RunFolder, holds_what_the_run_was_and_what_happened_in_it) {
  const RunFolder folder;
  const auto ran = test::sinew({"train",
                                "--model",
                                "mlp",
                                "--data",
                                "synthetic:200",
                                "--batch",
                                "8",
                                "-p",
                                "2",
                                "--steps",
                                "24",
                                "--compress",
                                "oktopk:0.02",
                                "--warmup",
                                "8",
                                "--bucket",
                                "1M",
                                "--prometheus",
                                folder.name() + "/metrics.prom",
                                "-o",
                                folder.name()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_LE(test::widest_line(ran.out), 80U) << ran.out;
  EXPECT_LE(test::widest_line(ran.err), 80U) << ran.err;
  for (const auto* name :
       {"run.json", "result.json", "workers.csv", "metrics-rank-0.jsonl", "metrics-rank-1.jsonl",
        "rank-0.trace", "rank-1.trace", "report.html", "report.md", "report.json", "metrics.prom"})
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  const auto run = nlohmann::json::parse(folder.text("run.json"));
  for (const auto* key : {"command", "sinew", "torch", "seed", "global_batch", "compression"})
    EXPECT_TRUE(run.contains(key)) << key;
  const auto result = nlohmann::json::parse(folder.text("result.json"));
  EXPECT_EQ(result["per_worker"].size(), 2U);
  EXPECT_GT(result["per_worker"][1]["compress_s"], 0);
  EXPECT_TRUE(test::has(folder.text("metrics.prom"), "sinew_train_steps 24\n"));
  EXPECT_TRUE(test::has(folder.text("metrics.prom"), "sinew_train_worker_batches{worker=\"1\"}"));
}

// The trace says the same as the result, by other means.
TEST(RunFolder, has_traces_that_agree_with_the_result) {
  const RunFolder folder;
  const auto ran = test::sinew(
      {"train",      "--model",  "mlp",     "--data", "synthetic:200", "--batch",     "8",
       "-p",         "2",        "--steps", "20",     "--compress",    "oktopk:0.05", "--warmup",
       "8",          "--bucket", "1M",      "--log",  "silent",        "--json",      "-o",
       folder.name()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto result = nlohmann::json::parse(ran.out);
  const auto profile =
      trace::summarize({trace::read_trace_file((folder / "rank-0.trace").string()),
                        trace::read_trace_file((folder / "rank-1.trace").string())});
  ASSERT_EQ(profile.ranks.size(), 2U);
  const auto buckets = result["buckets"].get<std::uint64_t>();
  double sent = 0;
  for (const auto& rank : profile.ranks) {
    EXPECT_TRUE(rank.closed);
    EXPECT_TRUE(test::has(rank.command, "--compress oktopk:0.05"));
    EXPECT_EQ(rank.routines.at("iteration").calls, 20U);
    EXPECT_EQ(rank.routines.at("compute.forward").calls, 20U);
    EXPECT_EQ(rank.routines.at("train.bucket").calls, 20 * buckets);
    EXPECT_EQ(rank.routines.at("train.bucket").bytes, 20U * 4 * 1'201'290);
    sent += static_cast<double>(rank.routines.at("train.bucket").sent);
    EXPECT_GE(rank.routines.at("iteration").total_ns,
              rank.routines.at("compute.forward").total_ns +
                  rank.routines.at("compute.backward").total_ns);
    std::uint64_t dense = 0, sparse = 0;
    bool has_role = false;
    for (const auto& [key, totals] : rank.rows) {
      if (key.routine == "iteration") (key.region == "dense" ? dense : sparse) += totals.calls;
      has_role |= key.label.starts_with("oktopk ") && key.region == "sparse";
    }
    EXPECT_EQ(dense, 8U);
    EXPECT_EQ(sparse, 12U);
    EXPECT_EQ(rank.info.at("dense_bytes"), "4805160");
    EXPECT_NEAR(std::stod(rank.info.at("realised_density")), 0.05, 0.01);
    EXPECT_GT(rank.routines.at("compress").total_ns, 0);
    EXPECT_TRUE(has_role) << "exchanges of the scheme say what they are for";
    EXPECT_LT(rank.communication_ns, rank.elapsed_ns) << "computing is not communication";
    EXPECT_GT(rank.all.resolved, 0U) << "waiting is told from transfer";
  }
  EXPECT_EQ(sent, result["comm"]["bytes_sent"].get<double>());
  const auto report = test::sinew({"report", folder.name()});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_TRUE(test::has(report.out, "allreduce")) << report.out;
  const auto predicted = test::sinew(
      {"predict", folder.name(), "--net", "alpha=5us,bw=1GB/s", "--workers", "2..16", "--json"});
  const auto modelled = test::sinew(
      {"report", folder.name(), "--net", "alpha=5us,bw=1GB/s", "--workers", "2..16", "--json"});
  ASSERT_EQ(modelled.status, 0) << modelled.err;
  EXPECT_EQ(nlohmann::json::parse(modelled.out)["more_workers"],
            nlohmann::json::parse(predicted.out));
}

// Nothing runs that knows of the folder.
void expect_gone(const RunFolder& folder) {
  for (int i = 0; i < 200 && !test::processes_with(folder.name()).empty(); ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(test::processes_with(folder.name()).empty());
}
// And no file that was never finished.
void expect_tidy(const RunFolder& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder.name()))
    EXPECT_FALSE(entry.path().string().ends_with(".part")) << entry.path();
}

TEST(Interrupted, by_ctrl_c_it_saves_the_step_it_is_at_and_leaves_nobody) {
  const RunFolder folder;
  std::uint64_t step = 0;
  {
    test::Program program(
        with({SINEW_PROGRAM}, tiny(folder, 3, {"--steps", "100000000", "--log", "silent"})));
    ASSERT_TRUE(test::wait_for_file(folder / "rank-2.trace"));
    std::this_thread::sleep_for(300ms);
    ::kill(program.pid(), SIGINT);
    const auto ran = program.finish();
    EXPECT_EQ(ran.status, 130) << ran.err;
    EXPECT_TRUE(test::has(ran.err, "--resume goes on from there")) << ran.err;
    const auto result = nlohmann::json::parse(ran.out, nullptr, false);
    ASSERT_TRUE(result.is_object()) << ran.out;
    EXPECT_EQ(result["interrupted"], true);
    step = result["steps"];
  }
  expect_gone(folder);
  expect_tidy(folder);
  ASSERT_EQ(folder.checkpoints().steps().back(), step);
  const auto ran = test::sinew(tiny(folder, 3, {"--steps", std::to_string(step + 5), "--resume"}));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["first_step"], step);
}

TEST(Interrupted, without_a_folder_it_just_ends) {
  const std::string mark = "0.0123456789";  // in nobody else's command line
  test::Program program({SINEW_PROGRAM, "train", "--model", "tiny", "-p", "2", "--steps",
                         "100000000", "--lr", mark, "--log", "verbose"});
  while (test::worker_of(mark, 1) < 0) std::this_thread::sleep_for(5ms);
  std::this_thread::sleep_for(1500ms);
  const auto begin = std::chrono::steady_clock::now();
  ::kill(program.pid(), SIGINT);
  EXPECT_EQ(program.finish().status, 130);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_TRUE(test::processes_with(mark).empty());
}

// A file system of 14 MB, in a namespace of its own: one checkpoint of 9.6 MB fits, a second one
// beside it does not.
TEST(FullDisk, while_saving_is_warned_about_and_survived) {
  if (test::run({"unshare", "-rm", "true"}).status != 0)
    GTEST_SKIP() << "no namespaces for file systems here";
  const RunFolder folder;
  fs::create_directories(folder.name());
  const auto script = fmt::format(
      "mount -t tmpfs -o size=14m tmpfs {0} && '{1}' train --model mlp --data synthetic:100 "
      "--batch 4 -p 2 --steps 12 --save-every 4 --no-evaluate -o {0}/run && ls {0}/run/checkpoints "
      "&& rm {0}/run/*.trace && '{1}' train --model mlp --data synthetic:100 --batch 4 -p 2 "
      "--steps 5 --no-evaluate --log silent -o {0}/run --resume --json",
      folder.name(), SINEW_PROGRAM);
  const auto ran = test::run({"unshare", "-rm", "bash", "-c", script});
  EXPECT_EQ(ran.status, 0) << ran.err << ran.out;
  EXPECT_TRUE(test::has(ran.err, "no checkpoint of step 8")) << ran.err;
  EXPECT_TRUE(test::has(ran.err, "No space left on device")) << ran.err;
  EXPECT_TRUE(test::has(ran.err, "training goes on")) << ran.err;
  EXPECT_TRUE(test::has(ran.out, "12 steps")) << ran.out;
  EXPECT_TRUE(test::has(ran.out, "step-000004\n")) << ran.out;
  EXPECT_TRUE(test::has(ran.out, "\"first_step\":4")) << "the old one is whole: " << ran.out;
}

struct Killed {
  nlohmann::json result;
  int victim = 0;
  bool hit = false;
};

Killed kill_one(unsigned seed, const RunFolder& folder, const Words& run, int workers) {
  std::mt19937 random(seed);
  Killed killed;
  killed.victim = static_cast<int>(random() % static_cast<unsigned>(workers));
  test::Program program(
      with({SINEW_PROGRAM}, with(run, {"-p", std::to_string(workers), "--elastic"})));
  for (int rank = 0; rank < workers; ++rank)
    EXPECT_TRUE(test::wait_for_file(folder / fmt::format("rank-{}.trace", rank)));
  std::this_thread::sleep_for(1ms * (random() % 400));
  const auto pid = test::worker_of(folder.name(), killed.victim);
  if (pid > 0) ::kill(pid, SIGKILL);
  const auto ran = program.finish();
  EXPECT_EQ(ran.status, 0) << ran.err;
  killed.result = nlohmann::json::parse(ran.out, nullptr, false);
  EXPECT_TRUE(killed.result.is_object()) << ran.out << ran.err;
  killed.hit = killed.result.contains("lost");
  if (killed.hit) {
    EXPECT_TRUE(test::has(ran.err, fmt::format("worker {} is gone", killed.victim))) << ran.err;
  }
  expect_gone(folder);
  expect_tidy(folder);
  return killed;
}

void expect_like_reference(const Killed& killed, const Words& model, int workers, int steps) {
  const RunFolder folder;
  const std::uint64_t step = killed.result["lost"][0]["step"];
  const auto run = [&](int size, std::uint64_t until, const Words& more) {
    const auto ran =
        test::sinew(with(with(model, more), {"-p", std::to_string(size), "--steps",
                                             std::to_string(until), "-o", folder.name()}));
    EXPECT_EQ(ran.status, 0) << ran.err;
    return nlohmann::json::parse(ran.out, nullptr, false);
  };
  Words resume;
  if (step > 0) {
    run(workers, step, {});
    resume = {"--resume"};
  }
  const auto rest = run(workers - 1, static_cast<std::uint64_t>(steps), resume);
  EXPECT_EQ(rest["parameters_xxh3"][0], killed.result["parameters_xxh3"][0])
      << "dropped at step " << step << " of " << workers;
  EXPECT_NEAR(rest["test_loss"], killed.result["test_loss"], 1e-6);
}

bool kill_and_compare(unsigned seed, bool compare) {
  std::mt19937 random(seed * 7919);
  const int workers = 3 + static_cast<int>(random() % (test::is_full() ? 6 : 2));
  const bool is_tiny = random() % 2 == 0;
  const int steps = is_tiny ? 4000 : 100;
  Words model{"train", "--json", "--log", "silent", "--threads", "1"};
  if (is_tiny)
    model = with(model, {"--model", "tiny", "--global-batch", std::to_string(16 * workers)});
  else
    model = with(model, {"--model", "mlp", "--data", "synthetic:400", "--batch", "8",
                         "--global-batch", std::to_string(8 * workers)});
  const RunFolder folder;
  const auto killed = kill_one(
      seed, folder, with(model, {"--steps", std::to_string(steps), "-o", folder.name()}), workers);
  if (!killed.hit || testing::Test::HasFailure()) return false;
  const auto& hashes = killed.result["parameters_xxh3"];
  EXPECT_EQ(hashes.size(), static_cast<std::size_t>(workers - 1));
  for (const auto& hash : hashes) EXPECT_EQ(hash, hashes[0]) << "seed " << seed;
  EXPECT_EQ(killed.result["lost"].size(), 1U);
  EXPECT_EQ(killed.result["lost"][0]["worker"], killed.victim);
  EXPECT_EQ(killed.result["steps"], steps);
  if (compare) expect_like_reference(killed, model, workers, steps);
  return true;
}

TEST(Killed, a_worker_is_named_and_the_others_finish_alike_and_as_if_it_had_been_dropped) {
  const auto trials = test::trials(4, 200);
  unsigned hit = 0;
  for (auto seed = trials.first; seed <= trials.last && !HasFailure(); ++seed)
    hit += kill_and_compare(seed, seed % (test::is_full() ? 4 : 2) == 1) ? 1 : 0;
  fmt::print("{} of {} kills came while it trained\n", hit, trials.count());
  EXPECT_GE(hit, trials.count() / 2) << "kills must come while it trains";
}

TEST(Killed, without_elastic_all_end_with_the_story_and_the_checkpoint_stands) {
  const RunFolder folder;
  test::Program program(
      with({SINEW_PROGRAM},
           tiny(folder, 3, {"--steps", "100000000", "--save-every", "50", "--log", "silent"})));
  ASSERT_TRUE(test::wait_for_file(folder / "checkpoints"));
  while (folder.checkpoints().steps().empty()) std::this_thread::sleep_for(5ms);
  ::kill(test::worker_of(folder.name(), 1), SIGKILL);
  const auto ran = program.finish();
  EXPECT_EQ(ran.status, 137) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(test::has(ran.err, "rank 1")) << ran.err;
  EXPECT_TRUE(test::has(ran.err, "stands; --elastic goes on without a lost worker")) << ran.err;
  expect_gone(folder);
  EXPECT_NO_THROW((void)folder.checkpoints().load_shared(folder.checkpoints().steps().back()));
}

}  // namespace
}  // namespace sinew
