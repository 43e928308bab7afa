// Chakra execution traces (MLCommons) as workloads: what one worker computes and which collectives
// it calls, with what each waits for. Read in their JSON form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/cost_book.hpp"

namespace sinew {

struct ChakraNode {
  enum class Kind : std::uint8_t { compute, collective, other };
  std::uint64_t id = 0;
  Kind kind = Kind::other;
  double duration_us = 0;  // of computing
  Collective collective{};
  double bytes = 0;
  std::vector<std::size_t> after{};  // places in ChakraTrace::nodes
};

struct ChakraTrace {
  std::vector<ChakraNode> nodes{};   // in the order of the file
  std::vector<std::string> notes{};  // what was passed over
};

/// A list of nodes, {"nodes": [...]}, or one JSON value after another as converters print them;
/// names in camelCase or with underscores. Throws Error{invalid_argument} that names the node.
ChakraTrace parse_chakra(std::string_view json, std::string_view path);

struct ChakraTimes {
  double step_ms = 0, compute_ms = 0, communication_ms = 0, exposed_ms = 0;
  double low_ms = 0, high_ms = 0;
  double bytes_per_worker = 0;
  std::string algorithms{};
};

/// One stream that computes and one that communicates; each takes its nodes in order of the trace
/// as soon as what they wait for has ended. Throws Error{invalid_argument} on a circle.
ChakraTimes replay_chakra(const ChakraTrace& trace, CostBook& costs, int workers);

}  // namespace sinew
