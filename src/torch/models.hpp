// The models there are, by name. What torch is stays behind this header, because including it costs
// half a minute.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "train/learner.hpp"

namespace sinew {

struct ModelOptions {
  std::uint64_t seed = 1;
  double dropout = -1;         // of models that have it; -1: as the model has it
  std::string device = "cpu";  // or "cuda": where it computes
  int local_rank = 0;          // which of several devices
  bool apart = false;          // tensors apart from their homes, as on a device; for tests
};

struct ModelInfo {
  std::string_view name;
  std::string_view summary;
  std::uint64_t parameters = 0;
  std::string_view data;  // what it learns from unless told otherwise
  std::unique_ptr<Learner> (*make)(const ModelOptions&) = nullptr;
};

/// The only list of models there is.
std::span<const ModelInfo> models() noexcept;
/// Throws Error{invalid_argument} that suggests the nearest.
const ModelInfo& find_model(std::string_view name);

/// Threads that torch computes with in this process.
void use_threads(int threads);
/// False where matrices are multiplied by the reference BLAS, which takes twenty times as long.
bool has_fast_blas() noexcept;
/// "1.13.1".
std::string_view torch_version() noexcept;

}  // namespace sinew
