// GOAL, the text that LogGOPSim reads, as a workload: what each rank sends, receives and computes,
// and after what. Written by `sinew draw --format goal` and by tools that trace MPI programs.
#pragma once

#include <string_view>
#include <vector>

#include "model/simulate.hpp"

namespace sinew {

struct GoalOp {
  enum class Kind : std::uint8_t { send, recv, calc };
  Kind kind{};
  int peer = -1;
  int tag = 0;
  double bytes = 0;
  double calc_ns = 0;
  std::vector<std::uint32_t> after_end{};    // ops of this rank that must have ended,
  std::vector<std::uint32_t> after_start{};  // or have begun
};

struct GoalProgram {
  std::vector<std::vector<GoalOp>> ranks{};
};

/// Throws Error{invalid_argument} that names the file and the line.
GoalProgram parse_goal(std::string_view text, std::string_view path);

struct GoalOutcome {
  double end_ps = 0;
  double messages = 0, bytes = 0;  // of all ranks
  double busiest_calc_ps = 0;      // of the rank that computes most
  double busiest_bytes = 0;        // of the rank that sends most
  int last_rank = 0;               // who ends last
};

/// Ports and protocols are those of model/simulate.hpp; a rank computes one thing at a time. Throws
/// Error{not_verified} when some operation can never begin, naming it.
GoalOutcome simulate_goal(const GoalProgram& program, const Network& network);

}  // namespace sinew
