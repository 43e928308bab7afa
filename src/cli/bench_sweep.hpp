// `sinew bench --sweep KNOB=A,B,C`: one option of the transport varied, everything else as it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/bench_contender.hpp"

namespace sinew {

struct Sweep {
  std::string knob;
  std::vector<std::string> values;
};

/// Throws Error{invalid_argument} when there is no such knob, when `transport` does not have it, or
/// when a value is not one of its.
Sweep parse_sweep(const std::string& text, std::string_view transport);

/// `setup` with that value of the knob.
BenchSetup with_knob(BenchSetup setup, std::string_view knob, std::string_view value);

}  // namespace sinew
