#include "model/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sinew {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeastBytePs = 1e-3;  // a million GB/s: bytes that cost nothing that can be seen

struct Line {
  double alpha = 0, beta = kLeastBytePs;
  double error = kInfinity;  // sum of |relative error|
};

void score(Line& line, std::span<const Sample> samples, double best) {
  line.error = 0;
  for (const auto& sample : samples) {
    line.error += std::abs(line.alpha + line.beta * sample.bytes - sample.ps) / sample.ps;
    if (line.error >= best) return;
  }
}

Line best_line(std::span<const Sample> samples) {
  Line best;
  const auto consider = [&](double alpha, double beta) {
    Line line{std::max(alpha, 0.0), std::max(beta, kLeastBytePs)};
    score(line, samples, best.error);
    if (line.error < best.error) best = line;
  };
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto& a = samples[i];
    consider(a.ps, 0);  // all alpha
    if (a.bytes > 0) consider(0, a.ps / a.bytes);
    for (std::size_t j = i + 1; j < samples.size(); ++j) {
      const auto& b = samples[j];
      if (b.bytes == a.bytes) continue;
      const double beta = (b.ps - a.ps) / (b.bytes - a.bytes);
      consider(a.ps - beta * a.bytes, beta);
    }
  }
  return best;
}

/// The best way to cut the first `count` samples, and where its last segment begins.
struct Cut {
  double cost = kInfinity;
  std::size_t begin = 0;
  std::size_t segments = 0;
  Line line{};
};

}  // namespace

Curve fit_curve(std::span<const Sample> samples, const FitOptions& options) {
  if (samples.empty()) return {};
  const auto count = samples.size();
  const auto least = std::min(options.least_points, count);
  std::vector<Cut> cuts(count + 1);
  cuts[0].cost = 0;
  for (std::size_t end = least; end <= count; ++end)
    for (std::size_t begin = 0; begin + least <= end; ++begin) {
      if (!std::isfinite(cuts[begin].cost) || cuts[begin].segments >= options.most_segments)
        continue;
      const auto line = best_line(samples.subspan(begin, end - begin));
      const double cost = cuts[begin].cost + line.error + options.penalty;
      if (cost < cuts[end].cost) cuts[end] = {cost, begin, cuts[begin].segments + 1, line};
    }
  std::vector<CurvePart> segments;
  for (auto end = count; end > 0; end = cuts[end].begin) {
    // Between two samples that differ in kind, the border is taken half-way, by ratio.
    const double most =
        end == count
            ? kInfinity
            : std::round(std::sqrt(std::max(samples[end - 1].bytes, 1.0) * samples[end].bytes));
    segments.push_back({most, cuts[end].line.alpha, cuts[end].line.beta});
  }
  std::reverse(segments.begin(), segments.end());
  return Curve(std::move(segments));
}

double left_out_error(std::span<const Sample> samples, const FitOptions& options) {
  std::vector<double> errors;
  for (std::size_t out = 1; out + 1 < samples.size(); ++out) {
    std::vector<Sample> rest(samples.begin(), samples.end());
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(out));
    const auto cost = fit_curve(rest, options).at(samples[out].bytes);
    errors.push_back(std::abs(static_cast<double>(cost.alpha + cost.beta) / samples[out].ps - 1));
  }
  if (errors.empty()) return 0;
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

}  // namespace sinew
