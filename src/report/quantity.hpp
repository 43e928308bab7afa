// Where a figure comes from, as part of its type: what was measured cannot be added to, averaged
// with or passed off as what was computed from a model or taken on somebody's word.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sinew::report {

enum class Source : std::uint8_t { measured, modelled, assumed };

constexpr std::string_view name(Source source) {
  return source == Source::measured   ? "measured"
         : source == Source::modelled ? "modelled"
                                      : "assumed";
}

template <Source kSource>
struct Quantity {
  double value = 0;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
};
using Measured = Quantity<Source::measured>;
using Modelled = Quantity<Source::modelled>;
using Assumed = Quantity<Source::assumed>;

/// A ratio is what its two parts are; of different kinds it is a model's answer.
template <Source kA, Source kB>
constexpr auto over(Quantity<kA> a, Quantity<kB> b) {
  constexpr auto kResult = kA == kB ? kA : Source::modelled;
  return Quantity<kResult>{b.value != 0 ? a.value / b.value : 0};
}

/// A quantity on its way to a reader, who sees its label.
struct Figure {
  double value = 0;
  Source source = Source::measured;
  constexpr Figure() = default;
  template <Source kSource>
  constexpr Figure(Quantity<kSource> quantity)  // NOLINT(google-explicit-constructor)
      : value(quantity.value), source(kSource) {}
  friend constexpr bool operator==(const Figure&, const Figure&) = default;
};

/// The mean of repeats and how far the true one may lie from it (95 %); 0: one repeat tells
/// nothing.
template <Source kSource>
struct Mean {
  Quantity<kSource> mean, error;
  std::size_t repeats = 0;
};

/// Student's t for 95 % of both sides.
double student_t95(std::size_t freedom);

template <Source kSource>
Mean<kSource> mean_of(std::span<const Quantity<kSource>> repeats) {
  Mean<kSource> result;
  result.repeats = repeats.size();
  if (repeats.empty()) return result;
  const auto n = static_cast<double>(repeats.size());
  for (const auto one : repeats) result.mean.value += one.value / n;
  if (repeats.size() < 2) return result;
  double squares = 0;
  for (const auto one : repeats) squares += std::pow(one.value - result.mean.value, 2);
  result.error.value = student_t95(repeats.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return result;
}

}  // namespace sinew::report
