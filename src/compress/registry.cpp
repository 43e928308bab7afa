// The one list of compression schemes. To add one: a file with its class, and a row here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <sinew/error.hpp>
#include <sinew/scheme.hpp>
#include "base/text.hpp"
#include "compress/schemes.hpp"

namespace sinew {
namespace {

constexpr std::array kOkTopk = std::to_array<SchemeParameter>({
    {"repartition", 64, 1, 1e9, true, "steps between two cuts of the regions"},
    {"balance_over", 1.5, 1, 1e9, false,
     "blocks are evened out when the largest is so many times the mean"},
});

constexpr std::array kSchemes = std::to_array<SchemeInfo>({
    {.name = "dense",
     .summary = "every element, as it is: what the others are measured against",
     .make = make_dense,
     .conserves = true},
    {.name = "oktopk",
     .summary = "the k largest sums: owners of regions add up, everybody gathers (Ok-Topk)",
     .make = make_oktopk,
     .sparse = true,
     .feedback = true,
     .conserves = true,
     .parameters = kOkTopk},
    {.name = "topka",
     .summary = "each rank's k largest elements, gathered by everybody (TopkA)",
     .make = make_topka,
     .sparse = true,
     .feedback = true,
     .conserves = true},
});

}  // namespace

std::span<const SchemeInfo> schemes() noexcept { return kSchemes; }

const SchemeInfo& find_scheme(std::string_view name, std::span<const SchemeInfo> own) {
  std::vector<std::string_view> names;
  for (const auto list : {own, schemes()})
    for (const auto& scheme : list) {
      if (scheme.name == name) return scheme;
      names.push_back(scheme.name);
    }
  throw Error(Errc::invalid_argument, unknown("compression scheme", name, names));
}

Parameters::Parameters(std::span<const SchemeParameter> known,
                       const std::map<std::string, double>& given) {
  std::vector<std::string_view> names;
  for (const auto& parameter : known) {
    values_.emplace(parameter.name, parameter.value);
    names.push_back(parameter.name);
  }
  for (const auto& [name, value] : given) {
    const auto at =
        std::find_if(known.begin(), known.end(), [&](const auto& row) { return row.name == name; });
    if (at == known.end())
      throw Error(Errc::invalid_argument,
                  names.empty() ? fmt::format("the scheme has no parameters, so no '{}'", name)
                                : unknown("parameter", name, names));
    if (!(value >= at->least && value <= at->most) || (at->whole && value != std::floor(value)))
      throw Error(
          Errc::invalid_argument,
          fmt::format("parameter {} is {}; {} between {} and {} ({})", name, value,
                      at->whole ? "it is a whole number" : "it is", at->least, at->most, at->help));
    values_.find(name)->second = value;
  }
}

double Parameters::operator[](std::string_view name) const {
  const auto at = values_.find(name);
  if (at == values_.end())
    throw Error(Errc::invalid_argument, fmt::format("the scheme declares no parameter '{}'", name));
  return at->second;
}

}  // namespace sinew
