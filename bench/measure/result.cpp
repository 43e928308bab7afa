#include "measure/result.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sinew::bench {
namespace {

double percentile(std::span<const double> sorted, double share) {
  const auto position = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(position, 1.0)) - 1];
}

double median_of(const std::vector<Summary>& rounds, double Summary::*field) {
  std::vector<double> values;
  for (const auto& round : rounds) values.push_back(round.*field);
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

const Turn* Round::turn(std::string_view contender) const noexcept {
  const auto found = std::ranges::find(turns, contender, &Turn::contender);
  return found == turns.end() ? nullptr : &*found;
}

bool Round::probed_within(double limit_us) const noexcept {
  return probe_before_us.value_or(0) <= limit_us && probe_after_us.value_or(0) <= limit_us;
}

Summary summarize(std::span<const double> samples_us) {
  if (samples_us.empty()) return {};
  std::vector<double> sorted(samples_us.begin(), samples_us.end());
  std::ranges::sort(sorted);
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  return {.samples = sorted.size(),
          .min_us = sorted.front(),
          .p50_us = percentile(sorted, 0.50),
          .p99_us = percentile(sorted, 0.99),
          .mean_us = sum / static_cast<double>(sorted.size())};
}

std::optional<Summary> over_rounds(const Result& result, std::string_view contender,
                                   double probe_limit_us) {
  std::vector<Summary> rounds;
  std::size_t samples = 0;
  for (const auto& round : result.rounds) {
    const Turn* turn = round.turn(contender);
    if (turn == nullptr || turn->samples_us.empty() || !round.probed_within(probe_limit_us)) {
      continue;
    }
    rounds.push_back(summarize(turn->samples_us));
    samples += turn->samples_us.size();
  }
  if (rounds.empty()) return std::nullopt;
  return Summary{.samples = samples,
                 .min_us = median_of(rounds, &Summary::min_us),
                 .p50_us = median_of(rounds, &Summary::p50_us),
                 .p99_us = median_of(rounds, &Summary::p99_us),
                 .mean_us = median_of(rounds, &Summary::mean_us)};
}

std::uint64_t wrong_elements(const Result& result, std::string_view contender) {
  std::uint64_t wrong = 0;
  for (const auto& round : result.rounds) {
    if (const Turn* turn = round.turn(contender)) wrong += turn->wrong;
  }
  return wrong;
}

}  // namespace sinew::bench
