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
#include "kernel/momentum.hpp"

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
  const GradientPart all{.whole = gradient};
  return step(parameters, std::span(&all, 1), rate, scale);
}

bool Optimizer::step(std::span<float> parameters, std::span<const GradientPart> parts, float rate,
                     float scale) {
  ++steps_;
  bool finite = true;
  for (const auto& part : parts) finite &= update(parameters, part, rate, scale);
  return finite;
}

bool Optimizer::update(std::span<float> parameters, const GradientPart& part, float rate,
                       float scale) {
  if (!part.whole.empty())
    return update(part.first, parameters.subspan(part.first, part.whole.size()), part.whole, rate,
                  scale);
  // Items are put into a block of zeros that stays in the nearest cache; the update clears it.
  constexpr std::size_t kBlock = 2048;
  std::array<float, kBlock> block{};
  const auto& [indices, values] = part.items;
  bool finite = true;
  std::size_t item = 0;
  for (std::size_t begin = 0; begin < part.elements; begin += kBlock) {
    const auto elements = std::min(kBlock, part.elements - begin);
    for (; item < indices.size() && indices[item] < begin + elements; ++item)
      block[indices[item] - begin] = values[item];
    finite &= update(part.first + begin, parameters.subspan(part.first + begin, elements),
                     std::span(block).first(elements), rate, scale);
  }
  return finite;
}

bool Optimizer::update(std::size_t first, std::span<float> parameters, std::span<float> gradient,
                       float rate, float scale) {
  if (!second_.empty()) return update_adam(first, parameters, gradient, rate, scale);
  return update_by_momentum(parameters, gradient, std::span(first_).subspan(first, gradient.size()),
                            {options_.momentum, options_.weight_decay, rate, scale});
}

bool Optimizer::update_adam(std::size_t first, std::span<float> parameters,
                            std::span<float> gradient, float rate, float scale) {
  const auto steps = static_cast<double>(steps_);
  const float beta1 = options_.beta1, beta2 = options_.beta2, decay = options_.weight_decay;
  const auto rate1 = static_cast<float>(rate / (1 - std::pow(double{beta1}, steps)));
  const auto root2 = static_cast<float>(1 / std::sqrt(1 - std::pow(double{beta2}, steps)));
  const float epsilon = options_.epsilon;
  float* __restrict w = parameters.data();
  float* __restrict g = gradient.data();
  float* __restrict m = first_.data() + first;
  float* __restrict v = second_.data() + first;
  std::uint32_t worst = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    worst = std::max(worst, exponent_of(g[i]));
    const float slope = scale * g[i] + decay * w[i];
    m[i] = unless_vanished(beta1 * m[i] + (1 - beta1) * slope);
    v[i] = unless_vanished(beta2 * v[i] + (1 - beta2) * slope * slope);
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

void write_parts(std::span<const GradientPart> parts, std::span<float> to) noexcept {
  std::fill(to.begin(), to.end(), 0.0F);
  for (const auto& part : parts) {
    std::copy(part.whole.begin(), part.whole.end(), to.subspan(part.first).begin());
    for (std::size_t i = 0; i < part.items.indices.size(); ++i)
      to[part.first + part.items.indices[i]] = part.items.values[i];
  }
}

namespace {

double squares_of(std::span<const float> values) noexcept {
  constexpr std::size_t kSums = 8;  // so that additions overlap
  double sums[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= values.size(); i += kSums)
    for (std::size_t lane = 0; lane < kSums; ++lane)
      sums[lane] += double{values[i + lane]} * values[i + lane];
  for (; i < values.size(); ++i) sums[0] += double{values[i]} * values[i];
  double sum = 0;
  for (const auto part : sums) sum += part;
  return sum;
}

}  // namespace

double norm_of(std::span<const float> values) noexcept { return std::sqrt(squares_of(values)); }

double norm_of(std::span<const GradientPart> parts) noexcept {
  double squares = 0;
  for (const auto& part : parts)
    squares += squares_of(part.whole.empty() ? part.items.values : part.whole);
  return std::sqrt(squares);
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
