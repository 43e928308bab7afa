// The command line of `sinew train`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "torch/models.hpp"
#include "train/trainer.hpp"

namespace sinew {

enum class Log : std::uint8_t { silent, normal, verbose };

/// TrainOptions::bucket_bytes until it is known how large they shall be.
constexpr std::uint64_t kAutoBucket = 0;

struct TrainCommand {
  TrainOptions train;
  ModelOptions model;
  const ModelInfo* info = nullptr;
  int workers = 0;  // 0: as many as there are, or 1
  int threads = 0;  // of each worker; 0: the cores shared evenly
  std::string transport;
  double timeout_s = 300;
  bool serves = false;  // a process besides the workers is the server
  Log log = Log::normal;
  bool json = false;
  std::string folder;      // of the run, or ""
  std::string prometheus;  // a file, or ""
  std::string line;        // the command as it was typed
};

/// Nothing: --help was printed. Throws Error{invalid_argument} for what cannot be.
std::optional<TrainCommand> read_command(int argc, char** argv);

}  // namespace sinew
