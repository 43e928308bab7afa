// Formulas for counted traffic: which known function of P gives the same multiple at every P tried.
#pragma once

#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace sinew {

/// Where formulas are compared. Powers of two, since those of trees hold for them only.
inline constexpr std::array kFormSizes{4, 8, 16, 32};

/// The formula in P that equals multiples[i] at kFormSizes[i] for all i; "" when none does, or when
/// the multiple does not depend on P.
inline std::string_view closed_form(std::span<const double> multiples) {
  struct Form {
    std::string_view text;
    double (*at)(double ranks);
  };
  constexpr std::array kForms = std::to_array<Form>({
      {"1/P S", [](double p) { return 1 / p; }},
      {"(P-1)/P S", [](double p) { return (p - 1) / p; }},
      {"2 (P-1)/P S", [](double p) { return 2 * (p - 1) / p; }},
      {"1/2 S log2 P", [](double p) { return std::log2(p) / 2; }},
      {"S log2 P", [](double p) { return std::log2(p); }},
      {"S (log2 P - 1)", [](double p) { return std::log2(p) - 1; }},
      {"S (P/2 - 1)", [](double p) { return p / 2 - 1; }},
      {"S (P-1)", [](double p) { return p - 1; }},
  });
  for (const auto& form : kForms) {
    bool equal = multiples.size() == kFormSizes.size();
    for (std::size_t i = 0; equal && i < multiples.size(); ++i)
      equal = std::abs(form.at(kFormSizes[i]) - multiples[i]) < 1e-9;
    if (equal) return form.text;
  }
  return "";
}

}  // namespace sinew
