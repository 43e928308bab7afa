#include "train/compression_spec.hpp"

#include <fmt/format.h>

#include <charconv>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {
namespace {

constexpr double kUsualDensity = 0.01;

template <class Number>
Number parse_number(std::string_view text, std::string_view whole) {
  Number value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size())
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' in '{}' is no number; write oktopk:0.02, or "
                            "oktopk:0.25@0,0.02@500 for a density that changes at step 500",
                            text, whole));
  return value;
}

CompressionSpec::Stage parse_stage(std::string_view text, std::string_view whole) {
  const auto at = text.find('@');
  CompressionSpec::Stage stage;
  stage.density = parse_number<double>(text.substr(0, at), whole);
  if (at != std::string_view::npos)
    stage.step = parse_number<std::uint64_t>(text.substr(at + 1), whole);
  if (!(stage.density > 0 && stage.density <= 1))
    throw Error(Errc::invalid_argument,
                fmt::format("density {} is not in (0, 1]; 0.01 sends one element of a hundred",
                            stage.density));
  return stage;
}

}  // namespace

CompressionSpec parse_compression(std::string_view text) {
  CompressionSpec spec;
  const auto colon = text.find(':');
  const auto& scheme = find_scheme(text.substr(0, colon));
  spec.scheme = scheme.name;
  if (colon != std::string_view::npos) {
    if (!scheme.sparse)
      throw Error(Errc::invalid_argument,
                  fmt::format("{} selects nothing, so it has no density; write --compress {}",
                              scheme.name, scheme.name));
    for (const auto part : split(text.substr(colon + 1), ','))
      spec.stages.push_back(parse_stage(part, text));
  } else if (scheme.sparse) {
    spec.stages.push_back({0, kUsualDensity});
  }
  for (std::size_t i = 1; i < spec.stages.size(); ++i)
    if (spec.stages[i].step <= spec.stages[i - 1].step)
      throw Error(Errc::invalid_argument,
                  fmt::format("the steps in '{}' do not ascend; write 0.25@0,0.02@500", text));
  if (!spec.stages.empty() && spec.stages.front().step != 0)
    throw Error(Errc::invalid_argument,
                fmt::format("the first density in '{}' must be that of step 0", text));
  return spec;
}

std::size_t CompressionSpec::stage_at(std::uint64_t step) const noexcept {
  std::size_t stage = 0;
  while (stage + 1 < stages.size() && stages[stage + 1].step <= step) ++stage;
  return stage;
}

CompressionOptions CompressionSpec::options(std::size_t stage) const {
  CompressionOptions options;
  if (!stages.empty()) options.density = stages[stage].density;
  options.op = ReduceOp::sum;  // gradients come divided by the number of samples of all ranks
  options.parameters = parameters;
  return options;
}

}  // namespace sinew
