// Whole runs of `sinew train`, processes and all: workers together are one, stay equal bit for bit,
// and go on after a restart as if there had been none.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/program.hpp"
#include "train/checkpoint.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

bool is_full() {
  const char* full = std::getenv("SINEW_FULL");
  return full != nullptr && std::string(full) == "1";
}

class Folder {
 public:
  Folder() {
    static int count = 0;
    path_ = fs::temp_directory_path() / fmt::format("sinew-train-{}-{}", ::getpid(), ++count);
  }
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] std::string name() const { return path_.string(); }
  [[nodiscard]] Snapshot model() const {
    const CheckpointFolder checkpoints(path_ / "checkpoints");
    const auto steps = checkpoints.steps();
    return steps.empty() ? Snapshot{} : checkpoints.load_shared(steps.back());
  }

 private:
  fs::path path_;
};

nlohmann::json train(Words words, const std::string& more = "") {
  words.insert(words.begin(), "train");
  for (const auto* word : {"--json", "--log", "silent", "--threads", "1"}) words.emplace_back(word);
  if (!more.empty()) words.insert(words.end(), {"-o", more});
  const auto ran = test::sinew(words);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return nlohmann::json::parse(ran.out, nullptr, false);
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

double relative_difference(const Snapshot& a, const Snapshot& b) {
  double difference = 0, norm = 0;
  for (const auto& [name, array] : a.state.arrays()) {
    if (!name.starts_with("parameter/")) continue;
    const auto x = a.state.get<float>(name), y = b.state.get<float>(name);
    EXPECT_EQ(x.size(), y.size()) << name;
    for (std::size_t i = 0; i < x.size(); ++i) {
      difference += std::pow(double{x[i]} - y[i], 2);
      norm += std::pow(double{x[i]}, 2);
    }
  }
  return std::sqrt(difference / norm);
}

// 100 samples in batches of 32: the fourth step has 4, which three workers share unevenly.
void expect_workers_are_one(const Words& model, int workers, std::size_t batch) {
  const Folder alone, together;
  const auto global = batch * static_cast<std::size_t>(workers);
  const auto one =
      train(with(model, {"--batch", std::to_string(global), "--steps", "5"}), alone.name());
  const auto many =
      train(with(model, {"--batch", std::to_string(batch), "--steps", "5", "-p",
                         std::to_string(workers), "--check", "1", "--bucket", "100K"}),
            together.name());
  const auto difference = relative_difference(alone.model(), together.model());
  EXPECT_LE(difference, 1e-6) << model[1] << " with " << workers;
  EXPECT_GT(many["buckets"], 0);
  EXPECT_EQ(many["comm"]["collectives_per_step"], many["buckets"]) << "no other collective";
}

TEST(Train, many_workers_do_what_one_does_with_their_batches_together) {
  const Words mlp{"--model", "mlp", "--data", "synthetic:100"};
  expect_workers_are_one(mlp, 3, 11);
  expect_workers_are_one({"--model", "cnn", "--data", "synthetic:100", "--dropout", "0"}, 2, 16);
  expect_workers_are_one({"--model", "tiny", "--optimizer", "adam"}, 4, 8);
  if (!is_full()) return;
  expect_workers_are_one(mlp, 2, 16);
  expect_workers_are_one(mlp, 4, 8);
  expect_workers_are_one(mlp, 8, 4);
  expect_workers_are_one(with(mlp, {"--transport", "tcp"}), 4, 8);
}

// Statistics of batch normalisation are of each worker's samples: after a comparison all have rank
// 0's.
TEST(Train, workers_stay_equal_with_batch_normalisation_and_sequences) {
  const auto result = train({"--model", "ctc-small", "--data", "tones:16", "--batch", "2", "-p",
                             "2", "--steps", "3", "--check", "1", "--lr", "0.001"});
  EXPECT_EQ(result["parameters_xxh3"][0], result["parameters_xxh3"][1]);
  EXPECT_LE(result["accuracy"], 1);
  EXPECT_EQ(result["label_error_rate"], 1 - result["accuracy"].get<double>());
}

TEST(Train, several_passes_a_step_are_one_larger_batch) {
  const Folder whole, parts;
  const Words model{"--model", "mlp", "--data", "synthetic:100", "--steps",
                    "4",       "-p",  "2",      "--clip",        "0.5"};
  train(with(model, {"--batch", "24"}), whole.name());
  train(with(model, {"--batch", "8", "--accumulate", "3"}), parts.name());
  EXPECT_LE(relative_difference(whole.model(), parts.model()), 1e-6);
}

void expect_goes_on(const Words& model) {
  const Folder paused;
  const auto whole = train(with(model, {"--steps", "20"}));
  train(with(model, {"--steps", "10"}), paused.name());
  const auto rest = train(with(model, {"--steps", "20", "--resume"}), paused.name());
  EXPECT_EQ(rest["first_step"], 10);
  EXPECT_EQ(rest["parameters_xxh3"], whole["parameters_xxh3"]) << model[1];
  EXPECT_EQ(rest["test_loss"], whole["test_loss"]);
  EXPECT_EQ(rest["parameters_xxh3"].size(), 2U);
  EXPECT_EQ(rest["parameters_xxh3"][0], rest["parameters_xxh3"][1]);
}

TEST(Train, ten_steps_and_ten_more_after_a_restart_are_twenty_bit_for_bit) {
  const Words small{"--data", "synthetic:100", "--batch", "8", "-p", "2"};
  expect_goes_on(with(
      {"--model", "mlp", "--compress", "oktopk:0.1@0,0.02@14", "--warmup", "4", "--bucket", "1M"},
      small));
  expect_goes_on(with(
      {"--model", "mlp", "--compress", "oktopk:0.02", "--accumulate", "3", "--precision", "bf16"},
      small));
  expect_goes_on({"--model", "tiny", "--optimizer", "adam", "-p", "2"});
  if (!is_full()) return;
  expect_goes_on(with({"--model", "cnn", "--optimizer", "adam"}, small));
  for (const auto* scheme : {"topka:0.02", "gtopk:0.02", "dgc:0.02", "powersgd", "int8", "qsgd",
                             "onebit", "randomk:0.05"})
    expect_goes_on(with({"--model", "mlp", "--compress", scheme}, small));
}

TEST(Train, two_runs_are_the_same_bit_for_bit) {
  const Words words{"--model", "mlp",     "--data", "synthetic:100", "--batch",    "8", "-p",
                    "3",       "--steps", "6",      "--compress",    "oktopk:0.05"};
  EXPECT_EQ(train(words)["parameters_xxh3"], train(words)["parameters_xxh3"]);
}

// Few steps in which a small part travels cost some accuracy; how little it is after many is
// measured below.
TEST(Train, compressed_it_learns_nearly_as_well_and_sends_far_less) {
  const Words words{"--model", "mlp", "--data", "fashion:4000", "--batch",
                    "32",      "-p",  "2",      "--steps",      "120"};
  const auto dense = train(words);
  const auto sparse = train(with(words, {"--compress", "oktopk:0.02", "--warmup", "20"}));
  EXPECT_GT(dense["accuracy"], 0.75);
  EXPECT_GT(sparse["accuracy"].get<double>(), dense["accuracy"].get<double>() - 0.07);
  // 20 of 120 steps are dense, the others have 2 %.
  EXPECT_NEAR(sparse["density_mean"], (20 + 100 * 0.02) / 120, 0.02);
  EXPECT_LT(sparse["comm"]["bytes_sent"].get<double>(),
            dense["comm"]["bytes_sent"].get<double>() / 2);
}

TEST(Train, compressed_to_two_percent_it_is_within_a_point_of_dense_over_five_seeds) {
  if (!is_full()) GTEST_SKIP() << "SINEW_FULL=1 runs it";
  constexpr int kSeeds = 5;
  double sum = 0, squares = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const Words words{"--model", "cnn", "-p",     "2",
                      "--steps", "400", "--seed", std::to_string(seed)};
    const double dense = train(words)["accuracy"];
    const double sparse =
        train(with(words, {"--compress", "oktopk:0.02", "--warmup", "40"}))["accuracy"];
    fmt::print("seed {}: dense {:.2f} %, Ok-Topk {:.2f} %\n", seed, 100 * dense, 100 * sparse);
    const double points = 100 * (dense - sparse);
    sum += points;
    squares += points * points;
  }
  const double mean = sum / kSeeds;
  const double deviation = std::sqrt((squares - kSeeds * mean * mean) / (kSeeds - 1));
  fmt::print("dense is better by {:.2f} +- {:.2f} points (95 %)\n", mean,
             2.776 * deviation / std::sqrt(double{kSeeds}));
  EXPECT_LE(mean, 1.0);
}

TEST(Train, stops_by_the_clock_on_all_workers_at_once) {
  const auto result = train({"--model", "tiny", "-p", "3", "--seconds", "0.5"});
  EXPECT_GT(result["steps"], 20);
  EXPECT_NEAR(result["seconds"], 0.5, 0.4);
}

void expect_refused(Words words, int status, const std::string& part) {
  words.insert(words.begin(), "train");
  const auto ran = test::sinew(words);
  EXPECT_EQ(ran.status, status) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(test::has(ran.err, part)) << ran.err;
}

TEST(Train, says_what_is_wrong_with_what_it_was_told) {
  expect_refused({"--modell", "mlp"}, 2, "did you mean '--model'?");
  expect_refused({"--model", "mpl", "--steps", "1"}, 2, "did you mean 'mlp'?");
  expect_refused({"--steps", "1", "--compress", "oktopk:7"}, 2, "not in (0, 1]");
  expect_refused({"--steps", "1", "--resume"}, 2, "--output");
  expect_refused({"--steps", "1", "--data", "idx:/none"}, 1, "/none");
  expect_refused({"--model", "tiny", "--data", "rows:3", "-p", "4", "--steps", "1"}, 2,
                 "4 workers for 3 samples");
  expect_refused({"--model", "tiny", "--data", "synthetic", "-p", "2", "--steps", "1"}, 2,
                 "the model tiny takes samples of 10 numbers, and those of synthetic are 1 x 28 x "
                 "28");
  expect_refused({"--model", "tiny", "--steps", "50", "--lr", "1e30", "-p", "2"}, 2,
                 "try a lower --lr");
}

TEST(Train, does_not_go_on_from_what_it_cannot) {
  const Folder folder;
  const Words words{"--model", "tiny",        "-p",       "2",       "--log", "silent",
                    "-o",      folder.name(), "--resume", "--steps", "8"};
  expect_refused(words, 2, "no checkpoint in");
  train({"--model", "tiny", "-p", "2", "--steps", "4"}, folder.name());
  expect_refused(with(words, {"--seed", "5"}), 2, "seed 1, this run has 5");
  expect_refused(with(words, {"--bucket", "1K"}), 2, "this run has 1024");
  const Folder images;
  const Words of_images{"--data", "synthetic:64", "-p", "2", "--steps", "2"};
  train(with(of_images, {"--model", "mlp"}), images.name());
  expect_refused(with(of_images, {"--model", "cnn", "-o", images.name(), "--resume"}), 2,
                 "has model \"mlp\", this run has \"cnn\"");
  const auto file = CheckpointFolder(folder.name() + "/checkpoints").path_of(4) / "model.tensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  expect_refused(words, 2, "is damaged");
}

// Where nothing is hidden all goes in one. A run that began with other buckets goes on with them.
TEST(Train, chooses_buckets_itself_and_goes_on_with_those_it_has) {
  const Folder folder;
  const Words words{"--model", "mlp", "--data", "synthetic:64", "-p", "2"};
  const auto chosen = train(with(words, {"--steps", "1", "--bucket", "auto", "--no-overlap"}), "");
  EXPECT_EQ(chosen["buckets"], 1);
  const auto begun = train(with(words, {"--steps", "2", "--bucket", "1M"}), folder.name());
  ASSERT_GT(begun["buckets"], 1);
  const auto resumed =
      train(with(words, {"--steps", "4", "--bucket", "auto", "--resume"}), folder.name());
  EXPECT_EQ(resumed["buckets"], begun["buckets"]);
  expect_refused(with(words, {"--steps", "1", "--bucket", "0"}), 2, "25M, or auto");
}

TEST(Train, leaves_in_its_folder_what_it_was_and_what_happened) {
  const Folder folder;
  train({"--model", "tiny", "-p", "2", "--steps", "30", "--save-every", "10"}, folder.name());
  for (const auto* name :
       {"run.json", "result.json", "metrics-rank-0.jsonl", "metrics-rank-1.jsonl"})
    EXPECT_TRUE(fs::exists(folder.name() + "/" + name)) << name;
  std::ifstream metrics(folder.name() + "/metrics-rank-1.jsonl");
  int lines = 0;
  for (std::string line; std::getline(metrics, line); ++lines)
    EXPECT_EQ(nlohmann::json::parse(line)["step"], lines);
  EXPECT_EQ(lines, 30);
  EXPECT_EQ(CheckpointFolder(folder.name() + "/checkpoints").steps(),
            (std::vector<std::uint64_t>{20, 30}));
}

TEST(Train, reads_options_from_a_file_and_refuses_those_it_does_not_know) {
  const Folder folder;
  fs::create_directories(folder.name());
  std::ofstream(folder.name() + "/good.toml") << "model = \"tiny\"\nsteps = 3\n";
  std::ofstream(folder.name() + "/bad.toml") << "model = \"tiny\"\nstep = 3\n";
  EXPECT_EQ(train({"--config", folder.name() + "/good.toml"})["steps"], 3);
  expect_refused({"--config", folder.name() + "/bad.toml", "--steps", "1"}, 2, "step");
}

}  // namespace
}  // namespace sinew
