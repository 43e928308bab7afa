// What the figures of a summary ask for. One function a finding; find_performance() is the only
// list of them.
#pragma once

#include <optional>
#include <vector>

#include "report/summary.hpp"

namespace sinew::report {

/// Of what is concluded from the summary's times.
inline Confidence timed(const Summary& summary) {
  return summary.times == Source::measured ? Confidence::measured : Confidence::assumed;
}

/// All that apply, in no order.
std::vector<Finding> find_performance(const Summary& summary);

// By the calls.
std::optional<Finding> small_collectives(const Summary& summary);
std::optional<Finding> waiting_not_transfer(const Summary& summary);
std::optional<Finding> straggler(const Summary& summary);
std::optional<Finding> load_imbalance(const Summary& summary);
std::optional<Finding> oversubscribed(const Summary& summary);
std::optional<Finding> under_the_link(const Summary& summary);
std::optional<Finding> other_algorithm(const Summary& summary);
std::optional<Finding> rests_on_assumptions(const Summary& summary);

// By the iterations.
std::optional<Finding> dense_phase(const Summary& summary);
std::optional<Finding> density_not_held(const Summary& summary);
std::optional<Finding> no_overlap(const Summary& summary);
std::optional<Finding> small_buckets(const Summary& summary);
std::optional<Finding> one_large_bucket(const Summary& summary);
std::optional<Finding> costly_compression(const Summary& summary);
std::optional<Finding> slow_data(const Summary& summary);

}  // namespace sinew::report
