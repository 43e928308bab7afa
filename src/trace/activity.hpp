// What a rank was doing in a call, by the name of its routine. Programs that record more than
// communication name it so: "compute", "compute.backward", "data", "compress", "iteration".
#pragma once

#include <cstdint>
#include <string_view>

namespace sinew::trace {

enum class Activity : std::uint8_t {
  communication,
  compute,    // forward, backward, the optimizer
  data,       // waiting for input
  compress,   // selecting, encoding, decoding
  iteration,  // a whole step of the program; its sequence is its number
  local       // nothing of the above: it asks, begins, ends, or is part of another call
};

/// By the whole name, or what comes before its first dot.
Activity activity_of(std::string_view routine);

}  // namespace sinew::trace
