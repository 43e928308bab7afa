#include "model/curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <sinew/error.hpp>

namespace sinew {
namespace {

template <class Field>
double least(const std::vector<CurvePart>& segments, Field field) {
  if (segments.empty()) return 0;
  double value = std::numeric_limits<double>::infinity();
  for (const auto& segment : segments) value = std::min(value, segment.*field);
  return value;
}

}  // namespace

Picoseconds whole_ps(double ps, double bytes) {
  constexpr double kMost = 4e18;  // less than half of what 63 bits hold, so that two still add up
  if (!(ps <= kMost))
    throw Error(Errc::invalid_argument,
                fmt::format("{:.3g} bytes would take {:.3g} days, longer than times can be counted "
                            "here; use fewer bytes or a faster link",
                            bytes, ps / 1e12 / 86400));
  return std::llround(ps);
}

Curve::Curve(double alpha_ps, double byte_ps)
    : segments_{{std::numeric_limits<double>::infinity(), alpha_ps, byte_ps}} {}

Curve::Curve(std::vector<CurvePart> segments) : segments_(std::move(segments)) {
  if (!segments_.empty()) segments_.back().most_bytes = std::numeric_limits<double>::infinity();
}

Cost Curve::at(double bytes) const {
  for (const auto& segment : segments_)
    if (bytes <= segment.most_bytes)
      return {whole_ps(segment.alpha_ps, bytes), whole_ps(bytes * segment.byte_ps, bytes)};
  return {};
}

double Curve::least_alpha_ps() const noexcept { return least(segments_, &CurvePart::alpha_ps); }
double Curve::least_byte_ps() const noexcept { return least(segments_, &CurvePart::byte_ps); }

Curve Curve::slowed(double more_ps, double times) const {
  auto segments = segments_;
  for (auto& segment : segments) segment.alpha_ps += more_ps, segment.byte_ps *= times;
  return Curve(std::move(segments));
}

}  // namespace sinew
