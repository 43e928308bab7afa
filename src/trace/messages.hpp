// Messages found in both of their ranks' traces: receivers that waited because the sender was late.
#pragma once

#include <span>
#include <vector>

#include "trace/arrivals.hpp"

namespace sinew::trace {

struct LateSender {
  int sender = 0, receiver = 0;  // ranks in the world
  std::uint64_t messages = 0;    // blocking receives that were compared
  std::uint64_t late = 0;        // of which so many began before the send
  double waited_ns = 0;
};

struct Messages {
  std::vector<Waited> waited;
  std::vector<LateSender> late;    // the longest waits first
  std::uint64_t not_compared = 0;  // blocking receives without a certain partner
};

/// Messages of one communicator, sender, receiver and tag keep their order, so the n-th send is the
/// n-th receive. Where their numbers differ (wildcards, persistent requests, a trace that was cut)
/// nothing is compared.
/// `ranks`: of the traces, in the world. Waits within `error_ns` are none.
Messages compare_messages(std::span<const Trace> traces, std::span<const int> ranks,
                          double error_ns);

}  // namespace sinew::trace
