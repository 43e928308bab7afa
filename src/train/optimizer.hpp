// Turns gradients into new parameters: plain loops over flat memory, the same bits on every rank.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sinew/scheme.hpp>

namespace sinew {

struct OptimizerOptions {
  std::string kind = "sgd";                             // or "adam"
  float momentum = 0.9F;                                // of sgd
  float weight_decay = 0;                               // added to the gradient
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;  // of adam
};

class Optimizer {
 public:
  /// Throws Error{invalid_argument} for an unknown kind and numbers out of range.
  Optimizer(const OptimizerOptions& options, std::size_t elements);

  /// Moves the parameters, with the gradient times `scale`, and zeroes the gradient on the way.
  /// False when the gradient had a NaN or an infinity: the parameters are then of no use.
  bool step(std::span<float> parameters, std::span<float> gradient, float rate, float scale);

  void save(State& state) const;
  /// Throws Error{invalid_argument} when it is not of this kind and size.
  void load(const State& state);

 private:
  bool step_sgd(std::span<float> parameters, std::span<float> gradient, float rate, float scale);
  bool step_adam(std::span<float> parameters, std::span<float> gradient, float rate, float scale);

  OptimizerOptions options_;
  std::vector<float> first_, second_;  // moments; sgd has the first only
  std::uint64_t steps_ = 0;
};

/// The Euclidean norm, in an order that depends on the length alone.
double norm_of(std::span<const float> values) noexcept;

/// The learning rate of a step.
struct RateOptions {
  double rate = 0.05;
  std::uint64_t warmup = 0;  // steps in which it rises from 0
  /// "constant"; "cosine": down to 0 at the last step; "step:N:F": times F every N steps.
  std::string schedule = "constant";
};
/// `steps`: of the whole run, for "cosine". Throws Error{invalid_argument} on an unknown schedule.
double rate_at(const RateOptions& options, std::uint64_t step, std::uint64_t steps);

}  // namespace sinew
