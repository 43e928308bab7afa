// Two runs, or two sets of repeats, beside each other: ratios, and whether they mean anything.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/summary.hpp"
#include "report/words.hpp"

namespace sinew::report {

/// What may be averaged: the same program on as many ranks in the same configuration.
std::string configuration_of(const trace::Profile& profile);

/// One side. All of one configuration.
struct Side {
  std::string name;
  std::vector<Summary> runs;
};

enum class Verdict : std::uint8_t {
  better,   // beyond what chance does
  worse,    // the same
  same,     // within it
  unknown,  // one sample each: nothing tells what chance does
};

/// A figure of both sides; smaller is better. Never a mean over measured and modelled.
struct ComparisonRow {
  std::string what, unit;  // "s", "bytes", "share"
  Figure before, after;
  double before_error = 0, after_error = 0;  // of the mean, 95 %; 0: not known
  std::size_t before_samples = 0, after_samples = 0;
  Verdict verdict = Verdict::unknown;
  [[nodiscard]] double ratio() const { return before.value > 0 ? after.value / before.value : 0; }
};

struct Comparison {
  std::string before, after;
  std::vector<ComparisonRow> rows;
  std::vector<std::string> notes;  // what differs between the sides beside the figures
};

/// Throws Error{invalid_argument} when a side mixes measured with assumed times.
Comparison compare(const Side& before, const Side& after);

/// Rows that became worse by more than `limit` (0.05 is 5 %), and not by chance.
std::vector<const ComparisonRow*> worse_than(const Comparison& comparison, double limit);

TextTable comparison_table(const Comparison& comparison);
/// Repeats of one configuration: mean and interval.
TextTable repeats_table(const Side& side);
std::string to_json(const Comparison& comparison);

}  // namespace sinew::report
