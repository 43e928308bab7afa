// What each rank did when, and how that splits its time. Every moment belongs to one part.
#pragma once

#include <array>
#include <string_view>

#include "report/intervals.hpp"
#include "trace/reader.hpp"

namespace sinew::report {

enum class Part : std::uint8_t { compute, data, compress, moving, waiting, hidden };
inline constexpr std::array<std::string_view, 6> kPartNames{"compute", "data",    "compress",
                                                            "moving",  "waiting", "hidden"};

/// Seconds of a stretch of time. `hidden` is communication while something else was done, so it is
/// no part of the sum; `other` is what nobody recorded.
struct Split {
  double elapsed_s = 0;
  double compute_s = 0, data_s = 0, compress_s = 0, moving_s = 0, waiting_s = 0, hidden_s = 0;
  [[nodiscard]] double exposed_s() const { return moving_s + waiting_s; }
  [[nodiscard]] double other_s() const {
    const auto rest = elapsed_s - compute_s - data_s - compress_s - moving_s - waiting_s;
    return rest > 0 ? rest : 0;
  }
  void add(const Split& other, double weight = 1);
};

/// One rank. The parts do not overlap, but for `hidden`.
struct RankTime {
  std::array<Intervals, kPartNames.size()> parts;
  Interval whole;            // from its first to its last moment
  bool every_record = true;  // no record was thinned out or lost
  bool names_compute = false, names_data = false, names_compress = false, compared = false;

  [[nodiscard]] const Intervals& of(Part part) const {
    return parts[static_cast<std::size_t>(part)];
  }
};

std::vector<RankTime> rank_times(std::span<const trace::Trace> traces);

/// The split of each window; windows are in order and do not overlap.
std::vector<Split> splits_of(const RankTime& rank, std::span<const Interval> windows);

}  // namespace sinew::report
