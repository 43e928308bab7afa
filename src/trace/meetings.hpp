// Collectives as all their ranks recorded them.
#pragma once

#include <span>
#include <vector>

#include "trace/reader.hpp"

namespace sinew::trace {

enum class Needs {
  all,            // nobody is done before the last has come
  root,           // nobody before the root
  root_needs_all  // the root not before the last
};

struct Arrival {
  std::size_t trace;
  RecordedCall* call;
  bool is_root;

  /// Whether others wait for this rank to come, and whether it waits for others.
  [[nodiscard]] bool is_needed(Needs needs) const {
    return needs == Needs::all || is_root == (needs == Needs::root);
  }
  [[nodiscard]] bool waits(Needs needs) const {
    return needs == Needs::all || is_root == (needs == Needs::root_needs_all);
  }
};

struct Meeting {
  Needs needs{};
  std::vector<Arrival> arrivals;  // one of each rank
};

struct Meetings {
  std::vector<Meeting> complete;
  std::uint64_t incomplete = 0;  // collectives of which not all ranks are in the records
};

/// Blocking collectives: those of one communicator with one number are one.
Meetings find_meetings(std::span<Trace> traces);

}  // namespace sinew::trace
