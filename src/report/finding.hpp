// A conclusion from a profile, with the figures it rests on. Pure: no file, clock or output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/profile.hpp"

namespace sinew::report {

/// How the conclusion follows from the figures: they say it, or they leave little else.
enum class Confidence : std::uint8_t { measured, inferred };

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
  std::string command;  // to try, or empty
};

/// All that the functions of this layer find, the costliest first.
std::vector<Finding> find_all(const trace::Profile& profile);

/// For people; each finding a paragraph, unwrapped lines.
std::string findings_text(const std::vector<Finding>& findings);

}  // namespace sinew::report
