// What moving and combining bytes costs on some machine: the numbers that a simulation runs on.
// Read from a model file or from a line of text (model/network_file.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sinew {

/// Picoseconds, so that sums are exact and the same on every machine; 63 bits are 106 days.
using Picoseconds = std::int64_t;

/// What one message or one pass over some bytes takes: a start, and the bytes.
struct Cost {
  Picoseconds alpha = 0;
  Picoseconds beta = 0;
};

/// Up to `most_bytes` something costs `alpha_ps`, and `byte_ps` for each byte.
struct CurvePart {
  double most_bytes = 0;
  double alpha_ps = 0;
  double byte_ps = 0;
  friend bool operator==(const CurvePart&, const CurvePart&) = default;
};

/// Costs by size: segments in ascending order, of which the last goes on for ever.
class Curve {
 public:
  Curve() = default;  // free at any size
  Curve(double alpha_ps, double byte_ps);
  explicit Curve(std::vector<CurvePart> segments);

  /// Throws Error{invalid_argument} beyond what 63 bits of picoseconds hold.
  [[nodiscard]] Cost at(double bytes) const;
  [[nodiscard]] bool is_free() const noexcept { return segments_.empty(); }
  [[nodiscard]] const std::vector<CurvePart>& segments() const noexcept { return segments_; }
  /// The smallest of all segments, for bounds.
  [[nodiscard]] double least_alpha_ps() const noexcept;
  [[nodiscard]] double least_byte_ps() const noexcept;
  friend bool operator==(const Curve&, const Curve&) = default;

 private:
  std::vector<CurvePart> segments_;
};

/// Memory that ranks share: what `publish` and `gather` cost.
struct BoardCosts {
  double wait_ps = 0;     // until a rank notices that another has published
  double slot_bytes = 0;  // what fits a slot; longer data goes in passes. 0: any length fits
  Curve publish{};        // copying into the own slot
  Curve gather{};         // reading out of another's
  friend bool operator==(const BoardCosts&, const BoardCosts&) = default;
};

/// How far measurements may lie from predictions: factors on the time.
struct ErrorBar {
  double low = 1;
  double high = 1;
  friend bool operator==(const ErrorBar&, const ErrorBar&) = default;
};

/// Where a model came from, in the words of whoever made it.
struct Provenance {
  std::string made_by{}, host{}, date{}, transport{};
  int ranks = 0;              // it was measured with; 0: not measured
  int cores = 0;              // those ranks had
  double load = 0;            // average of the machine meanwhile
  double noise = 0;           // p90 over p25 of the samples, the median of all sizes
  double left_out_error = 0;  // median error of points that a fit did not see
  double schedule_error = 0;  // median error of predicted schedules, measured beside
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

struct Network {
  std::string name{};
  Curve one_way{};         // a message while its sender receives nothing
  Curve exchange{};        // a message while its sender receives one; free: as one_way
  double eager_bytes = 0;  // messages up to this size do not wait for their receiver
  Curve reduce{};          // combining what was received
  Curve copy{};            // copying on one rank
  double call_ps = 0;      // a call, before its first step
  std::optional<BoardCosts> board{};
  ErrorBar error{};
  Provenance provenance{};
  friend bool operator==(const Network&, const Network&) = default;
};

}  // namespace sinew
