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

constexpr double kMostSeed = 9007199254740992;  // 2^53: every whole number up to it is exact

constexpr std::array kDgc = std::to_array<SchemeParameter>({
    {"momentum", 0.9, 0, 1, false, "of the velocity that gathers before selecting; 0: none"},
    {"clip", 0, 0, 1e30, false, "largest norm of the sum of gradients; 0: any"},
    {"ramp_steps", 0, 0, 1e9, true,
     "steps at each density of 25 %, 6.25 %, ... down to the target; 0: the target at once"},
});
constexpr std::array kGaussianK = std::to_array<SchemeParameter>({
    {"corrections", 20, 0, 1000, true, "of the threshold in a step, at most"},
    {"correction", 0.02, 0.0001, 0.5, false, "how far each one moves it, as a share"},
});
constexpr std::array kInt8 = std::to_array<SchemeParameter>({
    {"block", 256, 1, 1 << 24, true, "elements that share a scale"},
});
constexpr std::array kOkTopk = std::to_array<SchemeParameter>({
    {"repartition", 64, 1, 1e9, true, "steps between two cuts of the regions"},
    {"balance_over", 1.5, 1, 1e9, false,
     "blocks are evened out when the largest is so many times the mean"},
});

constexpr std::array kOneBit = std::to_array<SchemeParameter>({
    {"columns", 1, 0, 1, true, "1: means for each column of a tensor; 0: for each tensor"},
});
constexpr std::array kPowerSgd = std::to_array<SchemeParameter>({
    {"rank", 4, 1, 1024, true, "columns of the thin matrices"},
    {"warm_start", 1, 0, 1, true, "1: begin where the last step ended; 0: at random"},
    {"least_gain", 2, 0, 1e9, false, "a tensor that would shrink less is sent as it is"},
    {"seed", 1, 0, kMostSeed, true, "of the first directions"},
});
constexpr std::array kQsgd = std::to_array<SchemeParameter>({
    {"levels", 127, 1, 32767, true, "of magnitude, above zero"},
    {"bucket", 512, 1, 1 << 24, true, "elements that share a norm"},
    {"seed", 1, 0, kMostSeed, true, "of the rounding"},
});
constexpr std::array kRandomK = std::to_array<SchemeParameter>({
    {"seed", 1, 0, kMostSeed, true, "of the choice"},
});
constexpr std::array kThreshold = std::to_array<SchemeParameter>({
    {"threshold", 0.001, 0, 1e38, false, "least magnitude that is sent"},
});

constexpr std::array kSchemes = std::to_array<SchemeInfo>({
    {.name = "dense",
     .summary = "every element, as it is: what the others are measured against",
     .make = make_dense,
     .conserves = true},
    {.name = "bf16",
     .summary = "every element in 16 bits, as wide as f32 and 3 digits fine",
     .make = make_bf16},
    {.name = "dgc",
     .summary = "the k largest after momentum, with clipping and a ramp of density (DGC)",
     .make = make_dgc,
     .sparse = true,
     .feedback = true,
     .parameters = kDgc},
    {.name = "fp16",
     .summary = "every element in 16 bits, 4 digits fine and up to 65504",
     .make = make_fp16},
    {.name = "gaussiank",
     .summary = "what lies above the quantile of a normal distribution (GaussianK)",
     .make = make_gaussiank,
     .sparse = true,
     .feedback = true,
     .conserves = true,
     .rank_order = true,
     .parameters = kGaussianK},
    {.name = "gtopk",
     .summary = "the k largest of pairwise sums up a tree, with provenance (gTopk)",
     .make = make_gtopk,
     .sparse = true,
     .feedback = true,
     .conserves = true},
    {.name = "int8",
     .summary = "every element in 8 bits, with a scale for each block",
     .make = make_int8,
     .feedback = true,
     .parameters = kInt8},
    {.name = "oktopk",
     .summary = "the k largest sums: owners of regions add up, everybody gathers (Ok-Topk)",
     .make = make_oktopk,
     .sparse = true,
     .feedback = true,
     .conserves = true,
     .rank_order = true,
     .parameters = kOkTopk,
     .far = true},
    {.name = "onebit",
     .summary = "signs, and the two means of each column or tensor (1-bit)",
     .make = make_onebit,
     .feedback = true,
     .parameters = kOneBit},
    {.name = "powersgd",
     .summary = "each matrix as a product of two thin ones (PowerSGD)",
     .make = make_powersgd,
     .feedback = true,
     .parameters = kPowerSgd},
    {.name = "qsgd",
     .summary = "a few levels, rounded by chance and right on average (QSGD)",
     .make = make_qsgd,
     .parameters = kQsgd},
    {.name = "randomk",
     .summary = "k elements by chance, the same on all ranks, without indices",
     .make = make_randomk,
     .sparse = true,
     .feedback = true,
     .conserves = true,
     .parameters = kRandomK},
    {.name = "threshold",
     .summary = "every element of at least a given magnitude",
     .make = make_threshold,
     .feedback = true,
     .conserves = true,
     .rank_order = true,
     .parameters = kThreshold},
    {.name = "topka",
     .summary = "each rank's k largest elements, gathered by everybody (TopkA)",
     .make = make_topka,
     .sparse = true,
     .feedback = true,
     .conserves = true,
     .rank_order = true},
    {.name = "topkdsa",
     .summary = "each rank's k largest, added up by owners of equal regions (TopkDSA)",
     .make = make_topkdsa,
     .sparse = true,
     .feedback = true,
     .conserves = true,
     .rank_order = true},
});

}  // namespace

void check_counts_in_32_bits(std::string_view scheme, std::size_t elements) {
  if (elements <= 0xFFFFFFFF) return;
  throw Error(Errc::unsupported, fmt::format("{} elements; {} counts up to {}: use several buckets",
                                             elements, scheme, 0xFFFFFFFF));
}

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
    const auto at = std::find_if(known.begin(), known.end(),
                                 [&wanted = name](const auto& row) { return row.name == wanted; });
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
