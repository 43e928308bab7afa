// Turns gradients into new parameters: loops over flat memory, the same bits on every rank.
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

/// A part of a gradient: all its elements, or those that are not 0.
struct GradientPart {
  std::size_t first = 0;     // where it begins in the whole
  std::span<float> whole{};  // zeroed by whoever uses it
  // Where that is empty:
  std::size_t elements = 0;
  FarGradient::Items items{};
};
/// As a vector of all elements; 0 where no part is.
void write_parts(std::span<const GradientPart> parts, std::span<float> to) noexcept;

class Optimizer {
 public:
  /// Throws Error{invalid_argument} for an unknown kind and numbers out of range.
  Optimizer(const OptimizerOptions& options, std::size_t elements);

  /// Moves the parameters, with the gradient times `scale`, and zeroes the gradient on the way.
  /// False when the gradient had a NaN or an infinity: the parameters are then of no use.
  bool step(std::span<float> parameters, std::span<float> gradient, float rate, float scale);
  /// The same, bit for bit, with a gradient in parts, which cover all that has one. A step of
  /// sparse ones reads and writes no gradient of full length.
  bool step(std::span<float> parameters, std::span<const GradientPart> parts, float rate,
            float scale);

  void save(State& state) const;
  /// Throws Error{invalid_argument} when it is not of this kind and size.
  void load(const State& state);

 private:
  /// `parameters` and `gradient` begin at element `first`.
  bool update(std::size_t first, std::span<float> parameters, std::span<float> gradient, float rate,
              float scale);
  bool update(std::span<float> parameters, const GradientPart& part, float rate, float scale);
  bool update_adam(std::size_t first, std::span<float> parameters, std::span<float> gradient,
                   float rate, float scale);

  OptimizerOptions options_;
  std::vector<float> first_, second_;  // moments; sgd has the first only
  std::uint64_t steps_ = 0;
};

/// The Euclidean norm, in an order that depends on the length alone.
double norm_of(std::span<const float> values) noexcept;
/// The same of a gradient in parts, each in an order of its own.
double norm_of(std::span<const GradientPart> parts) noexcept;

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
