// `sinew demo`: training with the communication under control, in about a minute.
#include <array>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/demo_parts.hpp"
#include "cli/verbs.hpp"

namespace sinew {

int run_demo(int argc, char** argv) {
  std::string what, ranks;
  TrainingDemo training;
  bool seed_run = false;
  CLI::App app(
      "Trains a model on Fashion-MNIST with several workers, dense and then with Ok-Topk, shows "
      "accuracy and communication side by side, predicts larger groups and writes a report. "
      "`collectives`: every collective on small numbers; `tour`: the same, then a schedule drawn, "
      "proven and run beside the MPIs installed here.",
      "sinew demo");
  app.add_option("what", what, "collectives, or tour (else: training)");
  app.add_option("-p,--ranks", ranks, "how many ranks or workers (4; of --seed-run 8)");
  app.add_option("-o,--output", training.folder, "folder of the runs and the report (sinew-demo)");
  app.add_option("--steps", training.steps, "of training (what takes about a minute)");
  app.add_option("--model", training.model, "another model of `sinew train` (cnn)");
  app.add_option("--data", training.data, "other data of `sinew train` (fashion)");
  app.add_option("--net", training.network,
                 "network to predict for: a model file or alpha=50us,bw=1.25GB/s (that)");
  app.add_flag("--seed-run", seed_run,
               "instead: lstman4 (27.6M parameters) with 8 workers for a few steps, dense and then "
               "sparse, and its tables; minutes on a small machine");
  if (const auto status = parse(app, argc, argv)) return *status;
  constexpr std::array<std::string_view, 2> kDemos{"collectives", "tour"};
  const int size = one_size(ranks.empty() ? seed_run ? "8" : "4" : ranks, {});
  if (what == "collectives") return demo_collectives(size);
  if (what == "tour") return demo_tour(size);
  if (!what.empty()) throw Error(Errc::invalid_argument, unknown("demo", what, kDemos));
  training.workers = size;
  return seed_run ? demo_seed_run(training) : demo_training(training);
}

}  // namespace sinew
