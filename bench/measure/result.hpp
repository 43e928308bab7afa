// What a tournament found out, as values to compute with.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/case.hpp"

namespace sinew::bench {

enum class Outcome : std::uint8_t { measured, unsupported, failed };

struct Turn {
  std::string contender;
  Outcome outcome = Outcome::measured;
  std::string story{};               // of a failure
  std::vector<double> samples_us{};  // a call
  std::uint32_t batch = 1;           // calls a sample
  std::uint64_t wrong = 0;           // elements, over all ranks
  std::string remark{};              // Contender::remark() of rank 0
};

struct Round {
  std::optional<double> probe_before_us{};  // flag_half_round_trip_us()
  std::optional<double> probe_after_us{};
  std::vector<Turn> turns{};  // in the order played

  [[nodiscard]] const Turn* turn(std::string_view contender) const noexcept;
  /// Both probes at or below the limit; true where there is no probe.
  [[nodiscard]] bool probed_within(double limit_us) const noexcept;
};

struct Result {
  Case what;
  int ranks = 0;
  std::vector<Round> rounds;
};

struct Summary {
  std::size_t samples = 0;
  double min_us = 0, p50_us = 0, p99_us = 0, mean_us = 0;
};

/// Percentiles by nearest rank; of no samples, all zero.
Summary summarize(std::span<const double> samples_us);

/// Median over rounds of a contender's min, p50, p99 and mean; nothing if it has no measured round
/// whose probes are within the limit.
std::optional<Summary> over_rounds(const Result& result, std::string_view contender,
                                   double probe_limit_us = std::numeric_limits<double>::infinity());

/// Wrong elements over all rounds.
std::uint64_t wrong_elements(const Result& result, std::string_view contender);

}  // namespace sinew::bench
