#include "model/passes.hpp"

#include <algorithm>
#include <cmath>

#include "schedule/form.hpp"

namespace sinew {

double chunk_bytes(const Schedule& schedule, double bytes) {
  const double full = std::max(schedule.chunks[0], schedule.chunks[1]);
  return full > 0 ? bytes / full : 0;
}

double passes_of(const Schedule& schedule, double bytes, const Network& network) {
  if (schedule.by_reference) return 1;
  const double board_chunks = schedule.chunks[3];
  const bool uses_board =
      board_chunks > 0 || std::any_of(schedule.steps.begin(), schedule.steps.end(),
                                      [](const Step& step) { return is_board_op(step.op); });
  const double fits = !uses_board     ? network.slice_bytes
                      : network.board ? network.board->slot_bytes / std::max(1.0, board_chunks)
                                      : 0;
  if (fits <= 0 || (uses_board && board_chunks == 0)) return 1;
  return std::clamp(std::ceil(chunk_bytes(schedule, bytes) / fits), 1.0, 1e9);
}

}  // namespace sinew
