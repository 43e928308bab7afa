// The parts of `sinew demo`. Each prints, and gives the status to leave with.
#pragma once

#include <string>

namespace sinew {

int demo_collectives(int ranks);
int demo_tour(int ranks);

struct TrainingDemo {
  std::string folder = "sinew-demo";
  int steps = 0;  // 0: what takes about a minute
  int workers = 4;
  std::string model, data;                         // "": what the demo is about
  std::string network = "alpha=50us,bw=1.25GB/s";  // of the prediction
};
/// Trains the same model dense and with Ok-Topk, and compares.
int demo_training(const TrainingDemo& wanted);
/// The largest model with 8 workers for a few steps, dense and then sparse, and its tables.
int demo_seed_run(const TrainingDemo& wanted);
/// Of the traces in a folder: message sizes by kind, operations, phases, what compression saved.
std::string seed_tables(const std::string& folder);

}  // namespace sinew
