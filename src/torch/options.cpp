#include "torch/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include <sinew/error.hpp>
#include "base/narrow_help.hpp"
#include "base/text.hpp"

namespace sinew {
namespace {

constexpr const char* kAbout =
    "Trains a model on several workers, a process each, which add up their gradients while they "
    "compute. Starts the workers itself, or is one of them under `sinew launch`, mpirun, srun or "
    "torchrun.";

/// What is typed and read in a second step.
struct Words {
  std::string model = "mlp", data, compress = "dense", bucket = "25M", log = "normal",
              mode = "allreduce";
  double rate = -1;
  bool no_overlap = false, no_evaluate = false;
};

std::string footer() {
  std::string text = "Models:\n";
  for (const auto& model : models())
    text +=
        fmt::format("  {:<10} {} ({} parameters)\n", model.name, model.summary, model.parameters);
  text += "Data:\n";
  for (const auto& source : data_sources())
    text += fmt::format("  {:<10} {}\n", source.name, source.summary);
  return text +
         "  NAME:N     the first N samples of it\n"
         "Example:\n"
         "  sinew train --model cnn -p 4 --steps 200 --compress oktopk:0.02 --warmup 20 -o run";
}

void add_model_options(CLI::App& app, TrainCommand& command, Words& words) {
  app.add_option("--model", words.model, "what is trained (mlp)");
  app.add_option("--data", words.data, "what it learns from (what fits the model)");
  app.add_option("--dropout", command.model.dropout, "share that dropout drops (the model's own)");
  app.add_option("--seed", command.train.seed, "of first values, order and dropout (1)");
  app.add_option("-p,--workers", command.workers, "how many processes (1, or those there are)");
  app.add_option("--precision", command.model.precision,
                 "f32 or bf16: what products are computed in (f32)");
  app.add_option("--device", command.model.device, "cpu or cuda: where it computes (cpu)");
  app.add_option("--threads", command.threads,
                 "threads a worker computes with (its share of cores)");
}

void add_length_options(CLI::App& app, TrainCommand& command) {
  auto& train = command.train;
  auto* steps = app.add_option("--steps", train.steps, "updates of the parameters, in all");
  auto* epochs = app.add_option("--epochs", train.epochs, "passes over the data, in all");
  auto* seconds = app.add_option("--seconds", train.seconds, "stop after so long");
  steps->excludes(epochs)->excludes(seconds);
  epochs->excludes(seconds);
  app.add_option("--batch", train.batch, "samples of a worker in a pass (64)");
  app.add_option("--accumulate", train.accumulate, "passes a step (1)");
  app.add_option("--global-batch", train.global_batch,
                 "samples of all workers in a step (batch x accumulate x workers)");
}

void add_update_options(CLI::App& app, TrainCommand& command, Words& words) {
  auto& train = command.train;
  app.add_option("--optimizer", train.optimizer.kind, "sgd or adam (sgd)");
  app.add_option("--lr", words.rate, "learning rate (0.05; of adam 0.001)");
  app.add_option("--lr-schedule", train.rate.schedule, "constant, cosine or step:N:FACTOR");
  app.add_option("--lr-warmup", train.rate.warmup, "steps in which the rate rises from 0");
  app.add_option("--momentum", train.optimizer.momentum, "of sgd (0.9)");
  app.add_option("--weight-decay", train.optimizer.weight_decay, "added to gradients (0)");
  app.add_option("--clip", train.clip, "norm that gradients are cut to (0: none)");
}

void add_communication_options(CLI::App& app, TrainCommand& command, Words& words) {
  app.add_option("--compress", words.compress,
                 "SCHEME or SCHEME:DENSITY of gradients, e.g. oktopk:0.02; SCHEME:0.25@0,0.02@500 "
                 "changes the density at step 500 (dense)");
  app.add_option("--warmup", command.train.compression.warmup, "so many dense steps first (0)");
  app.add_option("--bucket", words.bucket,
                 "bytes of gradients that travel together (25M); auto: by prediction");
  app.add_flag("--no-overlap", words.no_overlap, "communicate only after the backward pass");
  app.add_option("--transport", command.transport, "auto, shm, tcp or mpi (auto)");
  app.add_option("--timeout", command.timeout_s,
                 "seconds before a silent worker is given up (300)");
  app.add_option("--mode", words.mode,
                 "allreduce, or server: a process besides gives out batches and parameters "
                 "(allreduce)");
  app.add_option("--stale", command.train.stale,
                 "of mode server: batches a worker may be ahead of another (0: none)");
  app.add_flag("--elastic", command.train.elastic,
               "where a worker is lost, go on without it; costs a barrier a step");
}

void add_result_options(CLI::App& app, TrainCommand& command, Words& words) {
  auto& train = command.train;
  auto* folder =
      app.add_option("-o,--output", command.folder,
                     "folder of the run: what it was, traces, metrics, checkpoints, report");
  app.add_option("--save-every", train.save_every, "steps between checkpoints (0: one at the end)")
      ->needs(folder);
  app.add_flag("--resume", train.resume, "go on from the last checkpoint in the folder")
      ->needs(folder);
  app.add_option("--check", train.check_every,
                 "steps after which workers compare all bits of their parameters (0: at the end)");
  app.add_flag("--no-evaluate", words.no_evaluate, "no test at the end");
  app.add_option("--prometheus", command.prometheus,
                 "file for Prometheus' text format, written every few seconds and at the end");
  app.add_option("--log", words.log, "silent, normal or verbose (normal)");
  app.add_flag("--json", command.json, "the result as JSON");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_config("--config", "", "options from a TOML file; those of the command line come first");
}

Log parse_log(std::string_view text) {
  constexpr std::string_view kNames[] = {"silent", "normal", "verbose"};
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == text) return static_cast<Log>(i);
  throw Error(Errc::invalid_argument, unknown("log", text, kNames));
}

void settle(TrainCommand& command, const Words& words) {
  auto& train = command.train;
  command.info = &find_model(words.model);
  command.model.seed = train.seed;
  command.log = parse_log(words.log);
  constexpr std::string_view kModes[] = {"allreduce", "server"};
  command.serves = words.mode == kModes[1];
  if (!command.serves && words.mode != kModes[0])
    throw Error(Errc::invalid_argument, unknown("mode", words.mode, kModes));
  train.silent_s = command.timeout_s;
  train.model = words.model;
  train.data = words.data.empty() ? command.info->data : words.data;
  train.rate.rate = words.rate >= 0 ? words.rate : train.optimizer.kind == "adam" ? 0.001 : 0.05;
  train.bucket_bytes = words.bucket == "auto" ? kAutoBucket : parse_bytes(words.bucket);
  if (words.bucket != "auto" && train.bucket_bytes == kAutoBucket)
    throw Error(Errc::invalid_argument, "--bucket 0: say how many bytes, e.g. 25M, or auto");
  const auto warmup = train.compression.warmup;
  train.compression = parse_compression(words.compress);
  train.compression.warmup = warmup;
  train.overlap = !words.no_overlap;
  train.evaluate = !words.no_evaluate;
  train.measure = command.log != Log::silent || command.json || !command.folder.empty();
  if (!command.folder.empty()) train.folder = command.folder + "/checkpoints";
  // What would only be noticed by all workers at once.
  (void)rate_at(train.rate, 0, 1);
  (void)Optimizer(train.optimizer, 0);
  check_fits(*command.info, sample_shape(train.data), train.data);
  check_precision(*command.info, command.model.precision);
  if (command.workers < 0 || command.threads < 0)
    throw Error(Errc::invalid_argument, "--workers and --threads are at least 1");
  if (train.steps == 0 && train.epochs == 0 && !(train.seconds > 0))
    throw Error(Errc::invalid_argument, "how long? Say --steps, --epochs or --seconds");
}

[[noreturn]] void refuse(const CLI::App& app, const CLI::ParseError& error,
                         const std::vector<std::string>& words) {
  std::vector<std::string_view> known;
  for (const auto* option : app.get_options())
    known.insert(known.end(), option->get_lnames().begin(), option->get_lnames().end());
  for (const auto& word : words) {
    const auto name = std::string_view(word).substr(0, word.find('='));
    if (!name.starts_with("--") || app.get_option_no_throw(std::string(name)) != nullptr) continue;
    const auto near = nearest(name.substr(2), known);
    throw Error(Errc::invalid_argument,
                fmt::format("unknown option '{}'; {}`sinew train --help` lists the options", name,
                            near.empty() ? "" : fmt::format("did you mean '--{}'? ", near)));
  }
  throw Error(Errc::invalid_argument,
              fmt::format("{}; `sinew train --help` lists the options", error.what()));
}

}  // namespace

std::optional<TrainCommand> read_command(int argc, char** argv) {
  TrainCommand command;
  Words words;
  CLI::App app{kAbout, "sinew train"};
  app.formatter(std::make_shared<NarrowHelp>());
  app.footer(footer());
  add_model_options(app, command, words);
  add_length_options(app, command);
  add_update_options(app, command, words);
  add_communication_options(app, command, words);
  add_result_options(app, command, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return {};
  } catch (const CLI::ParseError& error) {
    refuse(app, error, {argv + 1, argv + argc});
  }
  settle(command, words);
  command.line = "sinew train";
  for (int i = 1; i < argc; ++i) command.line += fmt::format(" {}", argv[i]);
  return command;
}

}  // namespace sinew
