// What something costs by its size, in whole picoseconds.
#pragma once

#include <cstdint>
#include <vector>

namespace sinew {

/// Picoseconds, so that sums are exact and the same on every machine; 63 bits are 106 days.
using Picoseconds = std::int64_t;

/// What one message or one pass over some bytes takes: a start, and the bytes.
struct Cost {
  Picoseconds alpha = 0;
  Picoseconds beta = 0;
  friend bool operator==(const Cost&, const Cost&) = default;
};

/// A time as it is counted. Throws Error{invalid_argument} beyond what 63 bits hold; `bytes` is for
/// that message.
Picoseconds whole_ps(double ps, double bytes);

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
  /// The same curve with `more_ps` to begin, and `times` as long for all its bytes.
  [[nodiscard]] Curve slowed(double more_ps, double times) const;
  friend bool operator==(const Curve&, const Curve&) = default;

 private:
  std::vector<CurvePart> segments_;
};

}  // namespace sinew
