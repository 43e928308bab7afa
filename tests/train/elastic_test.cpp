// A worker is killed at any moment: the others name it, take the step under way together or not at
// all, and go on as a run would that had dropped the worker at that step. Real processes, a model
// in plain loops.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <random>
#include <sstream>
#include <thread>

#include <sinew/error.hpp>
#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"
#include "support/plain_learner.hpp"
#include "support/trials.hpp"
#include "train/synthetic.hpp"
#include "train/trainer.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

struct Case {
  int workers = 3;
  std::uint64_t steps = 60;
  std::string compress = "dense";
  test::Medium medium = test::Medium::shm;
};

TrainOptions options_of(const Case& what) {
  TrainOptions options;
  options.model = "plain";
  options.data = "rows";
  options.batch = 16;
  options.global_batch = 16 * static_cast<std::size_t>(what.workers);
  options.steps = what.steps;
  options.bucket_bytes = 64;  // two buckets
  options.compression = parse_compression(what.compress);
  options.compression.warmup = what.compress == "dense" ? 0 : 5;
  options.check_every = 7;
  options.elastic = true;
  return options;
}

/// Says when training has begun, and goes slowly, so that a kill hits it.
class Begins final : public TrainWatcher {
 public:
  explicit Begins(const test::Seat& seat) : seat_(seat) {}
  void on_step(const StepRecord& record) override {
    if (record.step == 0) seat_.tell("begins");
    std::this_thread::sleep_for(200us);
  }
  void on_warning(std::string_view text) override { warning = text; }
  std::string warning;

 private:
  const test::Seat& seat_;
};

std::string told_of(const TrainResult& result) {
  std::vector<std::string> lost;
  for (const auto& [worker, step] : result.lost) lost.push_back(fmt::format("{}@{}", worker, step));
  return fmt::format("end {} {:016x} {:.9f} {} {}", result.steps, result.hashes.front(),
                     result.test.loss, result.workers.size(), fmt::join(lost, ","));
}

// `begins` runs when the group is there, before anything is agreed on.
void work(
    const test::Seat& seat, const Case& what, const std::function<void()>& begins = [] {}) {
  const int descriptors = test::open_descriptors();
  {
    auto communicator = seat.join("train", {.timeout = 20s});
    begins();
    const auto data = make_rows(400, 3);
    test::PlainLearner learner(10, 10);
    Begins watcher(seat);
    const auto result = train(communicator, learner, data, options_of(what), watcher);
    if (!watcher.warning.empty()) seat.tell("warned " + watcher.warning);
    seat.tell(told_of(result));
  }
  if (test::open_descriptors() != descriptors) seat.tell("leaks descriptors");
  if (test::maps_a_segment()) seat.tell("leaks the segment");
}

struct End {
  std::uint64_t steps = 0;
  std::string hash;
  double loss = 0;
  std::size_t workers = 0;
  std::string lost;
};
End end_of(const test::Told& told) {
  End end;
  for (const auto& line : told.lines)
    if (line.starts_with("end ")) {
      std::istringstream text(line.substr(4));
      text >> end.steps >> end.hash >> end.loss >> end.workers >> end.lost;
    }
  return end;
}

/// The same run with a worker less from `step` on, and nobody killed: by a checkpoint of that step.
End reference(const Case& what, std::uint64_t step) {
  const auto folder = fs::temp_directory_path() / fmt::format("sinew-elastic-{}", ::getpid());
  fs::remove_all(folder);
  std::string told;
  for (const bool is_rest : {false, true}) {
    auto options = options_of(what);
    options.elastic = false;
    options.folder = folder.string();
    options.steps = is_rest ? what.steps : step;
    options.resume = is_rest && step > 0;
    if (options.steps == 0) continue;
    const auto body = [&](const test::Seat& seat) {
      auto communicator = seat.join("reference", {.timeout = 20s});
      const auto data = make_rows(400, 3);
      test::PlainLearner learner(10, 10);
      TrainWatcher watcher;
      const auto result = train(communicator, learner, data, options, watcher);
      if (communicator.rank() == 0) seat.tell(told_of(result));
    };
    const auto lines = test::fork_ranks(what.workers - (is_rest ? 1 : 0), body, what.medium);
    EXPECT_EQ(lines.size(), 1U) << fmt::format("{}", fmt::join(lines, "; "));
    if (!lines.empty()) told = lines.front();
  }
  fs::remove_all(folder);
  const auto at = told.find("end ");
  return end_of({{at == std::string::npos ? "" : told.substr(at)}, 0});
}

// True when the kill came before the end.
bool kill_one(unsigned seed) {
  std::mt19937 random(seed);
  Case what;
  what.workers = 3 + static_cast<int>(random() % 6);
  if (random() % 4 == 0) what.compress = "oktopk:0.2";
  if (random() % 3 == 0) what.medium = test::Medium::tcp;
  const int victim = static_cast<int>(random() % static_cast<unsigned>(what.workers));
  const auto story = fmt::format("seed {}: worker {} of {}, {} over {}", seed, victim, what.workers,
                                 what.compress, name(what.medium));
  test::ForkedRanks ranks(
      what.workers, [&](const test::Seat& seat) { work(seat, what); }, what.medium);
  EXPECT_TRUE(ranks.wait_for_lines(1, 30s)) << story;
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 25'000));
  ranks.signal(victim, SIGKILL);
  const auto all = ranks.finish(60s);
  const int first = victim == 0 ? 1 : 0;
  const auto expected = end_of(all[static_cast<std::size_t>(first)]);
  if (expected.lost.empty()) return false;  // it had ended
  EXPECT_TRUE(expected.lost.starts_with(fmt::format("{}@", victim))) << story << expected.lost;
  for (int rank = 0; rank < what.workers; ++rank) {
    if (rank == victim) continue;
    const auto& told = all[static_cast<std::size_t>(rank)];
    const auto lines = fmt::format("{}", fmt::join(told.lines, "; "));
    EXPECT_EQ(told.status, 0) << story << ", rank " << rank << ": " << lines;
    EXPECT_EQ(lines.find("leaks"), std::string::npos) << story << ": " << lines;
    const auto end = end_of(told);
    EXPECT_EQ(end.hash, expected.hash) << story << ", rank " << rank;
    EXPECT_EQ(end.lost, expected.lost) << story;
    EXPECT_EQ(end.steps, what.steps) << story;
    EXPECT_EQ(end.workers, static_cast<std::size_t>(what.workers - 1)) << story;
    EXPECT_EQ(told.lines.size() > 2, rank == first) << story << ": one of them says who: " << lines;
  }
  if (what.compress == "dense") {
    const auto other =
        reference(what, std::stoull(expected.lost.substr(expected.lost.find('@') + 1)));
    EXPECT_EQ(other.hash, expected.hash) << story << ", against a run without a kill";
    EXPECT_NEAR(other.loss, expected.loss, 1e-6) << story;
  }
  return true;
}

TEST(Elastic, a_worker_killed_at_any_moment_is_dropped_at_one_step_by_all_others) {
  const int descriptors = test::open_descriptors();
  const auto trials = test::trials(12, 200);
  unsigned hit = 0;
  for (auto seed = trials.first; seed <= trials.last && !HasFailure(); ++seed)
    hit += kill_one(seed) ? 1 : 0;
  fmt::print("{} of {} kills came while it trained\n", hit, trials.count());
  EXPECT_GE(hit, trials.count() / 2) << "kills must come while it trains";
  EXPECT_EQ(test::open_descriptors(), descriptors);
}

// While the others agree on the plan, share memory and compare their first parameters, some of
// them may be past that already.
TEST(Elastic, a_worker_killed_before_the_first_step_is_dropped_too) {
  const auto trials = test::trials(8, 60);
  unsigned before_any_step = 0;
  for (auto seed = trials.first; seed <= trials.last && !HasFailure(); ++seed) {
    std::mt19937 random(seed);
    const Case what{.workers = 3 + static_cast<int>(random() % 3),
                    .steps = 20,
                    .compress = random() % 3 == 0 ? "oktopk:0.2" : "dense",
                    .medium = random() % 3 == 0 ? test::Medium::tcp : test::Medium::shm};
    const int victim = static_cast<int>(random() % static_cast<unsigned>(what.workers));
    const std::chrono::microseconds delay(random() % 2'000);
    test::ForkedRanks ranks(
        what.workers,
        [&](const test::Seat& seat) {
          work(seat, what, [&] {
            if (seat.rank != victim) return;
            std::thread([&] {
              std::this_thread::sleep_for(delay);
              ::kill(::getpid(), SIGKILL);
            }).detach();
          });
        },
        what.medium);
    const auto all = ranks.finish(60s);
    const auto first = end_of(all[victim == 0 ? 1 : 0]);
    for (int rank = 0; rank < what.workers; ++rank) {
      if (rank == victim) continue;
      const auto& told = all[static_cast<std::size_t>(rank)];
      const auto story = fmt::format("seed {}: worker {} of {}, rank {}: {}", seed, victim,
                                     what.workers, rank, fmt::join(told.lines, "; "));
      EXPECT_EQ(told.status, 0) << story;
      EXPECT_EQ(story.find("leaks"), std::string::npos) << story;
      EXPECT_EQ(end_of(told).hash, first.hash) << story;
      EXPECT_EQ(end_of(told).steps, what.steps) << story;
    }
    if (!first.lost.ends_with("@0")) continue;
    ++before_any_step;
    if (what.compress != "dense") continue;
    EXPECT_EQ(reference(what, 0).hash, first.hash) << "seed " << seed;
  }
  fmt::print("{} of {} kills came before the first step\n", before_any_step, trials.count());
  EXPECT_GE(before_any_step, trials.count() / 4);
}

TEST(Elastic, two_deaths_and_three_are_survived_too) {
  const Case what{.workers = 5, .steps = 80};
  test::ForkedRanks ranks(5, [&](const test::Seat& seat) { work(seat, what); });
  ASSERT_TRUE(ranks.wait_for_lines(1, 30s));
  for (const int victim : {4, 0, 2}) {
    std::this_thread::sleep_for(2ms);
    ranks.signal(victim, SIGKILL);
  }
  const auto all = ranks.finish(60s);
  EXPECT_EQ(all[1].status, 0) << fmt::format("{}", fmt::join(all[1].lines, "; "));
  EXPECT_EQ(end_of(all[1]).hash, end_of(all[3]).hash);
  EXPECT_EQ(end_of(all[1]).workers, 2U);
}

TEST(Elastic, without_it_all_end_with_one_story_and_the_checkpoint_stands) {
  const auto folder = fs::temp_directory_path() / fmt::format("sinew-lost-{}", ::getpid());
  fs::remove_all(folder);
  test::ForkedRanks ranks(4, [&](const test::Seat& seat) {
    auto communicator = seat.join("train", {.timeout = 20s});
    const auto data = make_rows(400, 3);
    test::PlainLearner learner(10, 10);
    Begins watcher(seat);
    auto options = options_of({.workers = 4, .steps = 100'000});
    options.elastic = false;
    options.folder = folder.string();
    options.save_every = 5;
    try {
      train(communicator, learner, data, options, watcher);
    } catch (const Error& error) {
      seat.tell(fmt::format("{} {}", name(error.code()), error.what()));
    }
  });
  ASSERT_TRUE(ranks.wait_for_lines(1, 30s));
  std::this_thread::sleep_for(60ms);
  ranks.signal(2, SIGKILL);
  const auto all = ranks.finish(60s);
  for (const int rank : {0, 1, 3}) {
    const auto& lines = all[static_cast<std::size_t>(rank)].lines;
    ASSERT_EQ(lines.size(), 2U) << rank;
    EXPECT_TRUE(lines[1].starts_with("peer lost step ")) << lines[1];
    EXPECT_NE(lines[1].find("rank 2"), std::string::npos) << lines[1];
    EXPECT_NE(lines[1].find("stands; --elastic goes on"), std::string::npos) << lines[1];
  }
  const CheckpointFolder checkpoints(folder);
  ASSERT_FALSE(checkpoints.steps().empty());
  EXPECT_NO_THROW((void)checkpoints.load_shared(checkpoints.steps().back()));
  fs::remove_all(folder);
}

// All ranks have the signal at another moment; they end after the same step, which is saved.
TEST(Elastic, an_end_that_is_asked_for_comes_after_one_step_on_all_ranks) {
  const auto folder = fs::temp_directory_path() / fmt::format("sinew-asked-{}", ::getpid());
  fs::remove_all(folder);
  std::vector<std::uint64_t> steps(3);
  test::on_local(3, [&](Communicator& c) {
    const auto data = make_rows(400, 3);
    test::PlainLearner learner(10, 10);
    auto options = options_of({.workers = 3, .steps = 1'000'000});
    options.elastic = false;
    options.folder = folder.string();
    const auto until = std::chrono::steady_clock::now() + 100ms + c.rank() * 30ms;
    options.wants_end = [&] { return std::chrono::steady_clock::now() > until; };
    TrainWatcher watcher;
    const auto result = train(c, learner, data, options, watcher);
    EXPECT_TRUE(result.interrupted);
    EXPECT_FALSE(result.evaluated);
    steps[static_cast<std::size_t>(c.rank())] = result.steps;
  });
  EXPECT_EQ(steps, std::vector<std::uint64_t>(3, steps[0]));
  EXPECT_EQ(CheckpointFolder(folder).steps(), std::vector<std::uint64_t>{steps[0]});
  fs::remove_all(folder);
}

}  // namespace
}  // namespace sinew
