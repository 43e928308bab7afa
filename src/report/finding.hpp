// A conclusion from a profile, with the figures it rests on. Pure: no file, clock or output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/quantity.hpp"
#include "trace/profile.hpp"

namespace sinew::report {

/// How the conclusion follows from the figures: they say it, they leave little else, a model says
/// it, or somebody's word stands for a measurement.
enum class Confidence : std::uint8_t { measured, inferred, modelled, assumed };

constexpr std::string_view name(Confidence confidence) {
  switch (confidence) {
    case Confidence::measured:
      return "measured";
    case Confidence::inferred:
      return "inferred";
    case Confidence::modelled:
      return "modelled";
    default:
      return "assumed";
  }
}

/// What following the advice would save, by a model: seconds of the run, and between which bounds.
struct Benefit {
  Modelled seconds, low, high;
  std::string how;  // the arithmetic
};

struct Evidence {
  std::string name;  // "eight_byte_calls"
  double value = 0;
  std::string unit;  // "", "s", "us", "bytes", "%"
};

struct Finding {
  std::string id;     // "allreduce-polling"
  std::string claim;  // one sentence
  std::vector<std::string> arithmetic;
  std::vector<Evidence> evidence;
  Confidence confidence = Confidence::inferred;
  std::vector<std::string> advice;
  std::string command{};  // to try, or empty
  std::string chart{};    // id of the chart that shows it, or empty
  double cost_s = 0;      // of the run, at most: what the order of findings goes by
  std::optional<Benefit> benefit{};
};

/// All that the functions of this layer find, the costliest first.
std::vector<Finding> find_all(const trace::Profile& profile);

/// "Would save about 2.1 s (1.0 s to 2.1 s, modelled: ...)."
std::string benefit_text(const Benefit& benefit);

/// For people; each finding a paragraph, unwrapped lines.
std::string findings_text(const std::vector<Finding>& findings);

}  // namespace sinew::report
