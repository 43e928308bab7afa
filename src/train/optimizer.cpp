#include "train/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <numbers>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {
namespace {

constexpr std::array<std::string_view, 2> kKinds{"sgd", "adam"};
constexpr std::uint32_t kExponent = 0x7F800000U;

std::uint32_t exponent_of(float value) noexcept {
  return std::bit_cast<std::uint32_t>(value) & kExponent;
}

void check_range(std::string_view name, float value, float least, float below) {
  if (value >= least && value < below) return;
  throw Error(Errc::invalid_argument,
              fmt::format("{} is {}; it is between {} and {}", name, value, least, below));
}

template <class Number>
Number parse_part(std::string_view text, std::string_view schedule) {
  Number value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !(value > 0))
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' in '{}' is no positive number; write step:500:0.1 (times 0.1 "
                            "every 500 steps)",
                            text, schedule));
  return value;
}

double step_factor(std::string_view schedule, std::uint64_t step) {
  const auto parts = split(schedule, ':');
  if (parts.size() != 3)
    throw Error(Errc::invalid_argument,
                fmt::format("'{}'; write step:500:0.1 (times 0.1 every 500 steps)", schedule));
  const auto every = parse_part<std::uint64_t>(parts[1], schedule);
  const auto factor = parse_part<double>(parts[2], schedule);
  const auto times = step / every;
  return std::pow(factor, static_cast<double>(times));
}

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, std::size_t elements) : options_(options) {
  if (std::find(kKinds.begin(), kKinds.end(), options.kind) == kKinds.end())
    throw Error(Errc::invalid_argument, unknown("optimizer", options.kind, kKinds));
  check_range("momentum", options.momentum, 0, 1);
  check_range("weight decay", options.weight_decay, 0, 1);
  check_range("beta1", options.beta1, 0, 1);
  check_range("beta2", options.beta2, 0, 1);
  first_.resize(elements);
  if (options.kind == "adam") second_.resize(elements);
}

bool Optimizer::step(std::span<float> parameters, std::span<float> gradient, float rate,
                     float scale) {
  ++steps_;
  return second_.empty() ? step_sgd(parameters, gradient, rate, scale)
                         : step_adam(parameters, gradient, rate, scale);
}

bool Optimizer::step_sgd(std::span<float> parameters, std::span<float> gradient, float rate,
                         float scale) {
  const float momentum = options_.momentum, decay = options_.weight_decay;
  float* __restrict w = parameters.data();
  float* __restrict g = gradient.data();
  float* __restrict v = first_.data();
  std::uint32_t worst = 0;  // the largest exponent: all ones for NaN and infinity
  for (std::size_t i = 0; i < first_.size(); ++i) {
    worst = std::max(worst, exponent_of(g[i]));
    v[i] = momentum * v[i] + (scale * g[i] + decay * w[i]);
    w[i] -= rate * v[i];
    g[i] = 0;
  }
  return worst != kExponent;
}

bool Optimizer::step_adam(std::span<float> parameters, std::span<float> gradient, float rate,
                          float scale) {
  const auto steps = static_cast<double>(steps_);
  const float beta1 = options_.beta1, beta2 = options_.beta2, decay = options_.weight_decay;
  const auto rate1 = static_cast<float>(rate / (1 - std::pow(double{beta1}, steps)));
  const auto root2 = static_cast<float>(1 / std::sqrt(1 - std::pow(double{beta2}, steps)));
  const float epsilon = options_.epsilon;
  float* __restrict w = parameters.data();
  float* __restrict g = gradient.data();
  float* __restrict m = first_.data();
  float* __restrict v = second_.data();
  std::uint32_t worst = 0;
  for (std::size_t i = 0; i < first_.size(); ++i) {
    worst = std::max(worst, exponent_of(g[i]));
    const float slope = scale * g[i] + decay * w[i];
    m[i] = beta1 * m[i] + (1 - beta1) * slope;
    v[i] = beta2 * v[i] + (1 - beta2) * slope * slope;
    w[i] -= rate1 * m[i] / (std::sqrt(v[i]) * root2 + epsilon);
    g[i] = 0;
  }
  return worst != kExponent;
}

void Optimizer::save(State& state) const {
  state.put("optimizer/steps", std::span<const std::uint64_t>(&steps_, 1));
  state.put("optimizer/first", std::span<const float>(first_));
  if (!second_.empty()) state.put("optimizer/second", std::span<const float>(second_));
}

void Optimizer::load(const State& state) {
  auto first = state.get<float>("optimizer/first"), second = state.get<float>("optimizer/second");
  const auto steps = state.get<std::uint64_t>("optimizer/steps");
  if (first.size() != first_.size() || second.size() != second_.size() || steps.size() != 1)
    throw Error(Errc::invalid_argument, fmt::format("the saved optimizer is not {} of {} elements",
                                                    options_.kind, first_.size()));
  first_ = std::move(first);
  second_ = std::move(second);
  steps_ = steps.front();
}

double norm_of(std::span<const float> values) noexcept {
  constexpr std::size_t kSums = 8;  // so that additions overlap
  double sums[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= values.size(); i += kSums)
    for (std::size_t lane = 0; lane < kSums; ++lane)
      sums[lane] += double{values[i + lane]} * values[i + lane];
  for (; i < values.size(); ++i) sums[0] += double{values[i]} * values[i];
  double sum = 0;
  for (const auto part : sums) sum += part;
  return std::sqrt(sum);
}

double rate_at(const RateOptions& options, std::uint64_t step, std::uint64_t steps) {
  constexpr std::array<std::string_view, 3> kSchedules{"constant", "cosine", "step:N:F"};
  double rate = options.rate;
  if (step < options.warmup)
    rate *= static_cast<double>(step + 1) / static_cast<double>(options.warmup);
  if (options.schedule == "constant") return rate;
  if (options.schedule == "cosine")
    return rate / 2 *
           (1 + std::cos(std::numbers::pi * static_cast<double>(step) /
                         static_cast<double>(std::max<std::uint64_t>(1, steps))));
  if (options.schedule.starts_with("step:")) return rate * step_factor(options.schedule, step);
  throw Error(Errc::invalid_argument,
              unknown("learning-rate schedule", options.schedule, kSchedules));
}

}  // namespace sinew
