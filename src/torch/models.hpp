// The models there are, by name. What torch is stays behind this header, because including it costs
// half a minute.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "train/dataset.hpp"
#include "train/learner.hpp"

namespace sinew {

struct ModelOptions {
  std::uint64_t seed = 1;
  double dropout = -1;            // of models that have it; -1: as the model has it
  std::string precision = "f32";  // or "bf16": what products are computed in
  std::string device = "cpu";     // or "cuda": where it computes
  int local_rank = 0;             // which of several devices
  bool apart = false;             // tensors apart from their homes, as on a device; for tests
};

/// One sample as a model takes it.
struct SampleForm {
  std::array<std::int64_t, 3> extents{};  // 0: no more of them; -1: any length
  bool any_shape = false;                 // only how many numbers there are counts
  int classes = 0;                        // that it tells apart
};

struct ModelInfo {
  std::string_view name;
  std::string_view summary;
  std::uint64_t parameters = 0;
  std::string_view data;  // what it learns from unless told otherwise
  std::unique_ptr<Learner> (*make)(const ModelOptions&) = nullptr;
  SampleForm sample{};
  bool learns_sequences = false;  // what it gets wrong are letters, not samples
};

/// The only list of models there is.
std::span<const ModelInfo> models() noexcept;
/// Throws Error{invalid_argument} that suggests the nearest.
const ModelInfo& find_model(std::string_view name);

/// Throws Error{invalid_argument} that says what the model takes and what samples of this shape,
/// or these data, are. An empty shape is one that nobody knows yet. `data`: what they are called.
void check_fits(const ModelInfo& model, std::span<const std::int64_t> sample,
                std::string_view data);
void check_fits(const ModelInfo& model, const Dataset& set, std::string_view data);

/// Throws Error{invalid_argument} for a precision that nobody knows, or that the model has not.
void check_precision(const ModelInfo& model, std::string_view precision);

/// Threads that torch computes with in this process.
void use_threads(int threads);
/// False where matrices are multiplied by the reference BLAS, which takes twenty times as long.
bool has_fast_blas() noexcept;
/// "1.13.1".
std::string_view torch_version() noexcept;

}  // namespace sinew
