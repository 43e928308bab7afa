#include "model/symmetry.hpp"

#include <algorithm>
#include <set>

#include "schedule/form.hpp"

namespace sinew {
namespace {

int image_of(int peer, const Schedule& schedule, Symmetry symmetry) {
  if (peer < 0) return peer;
  return symmetry == Symmetry::flip ? peer ^ schedule.rank : (peer + schedule.rank) % schedule.size;
}

bool is_same(const Step& a, const Step& b) {
  return a.op == b.op && a.channel == b.channel && a.round == b.round &&
         a.src.count == b.src.count && a.dst.count == b.dst.count && a.src.buf == b.src.buf &&
         a.dst.buf == b.dst.buf;
}

bool has_board_steps(const Schedule& schedule) {
  return std::any_of(schedule.steps.begin(), schedule.steps.end(),
                     [](const Step& step) { return is_board_op(step.op); });
}

}  // namespace

bool is_image(const Schedule& first, const Schedule& schedule, Symmetry symmetry) {
  return std::equal(first.steps.begin(), first.steps.end(), schedule.steps.begin(),
                    schedule.steps.end(), [&](const Step& a, const Step& b) {
                      return is_same(a, b) && image_of(a.peer, schedule, symmetry) == b.peer;
                    });
}

Symmetry find_symmetry(int size, const std::function<Schedule(int rank)>& schedule) {
  if (size < 2) return Symmetry::none;
  const auto first = schedule(0);
  if (has_board_steps(first)) return Symmetry::none;
  bool shifts = true, flips = (size & (size - 1)) == 0;
  const std::set<int> others{1, 2 % size, 3 % size, size / 3, size / 2, size - 2, size - 1};
  for (const int rank : others) {
    if (rank == 0 || (!shifts && !flips)) continue;
    const auto other = schedule(rank);
    shifts = shifts && is_image(first, other, Symmetry::shift);
    flips = flips && is_image(first, other, Symmetry::flip);
  }
  return shifts ? Symmetry::shift : flips ? Symmetry::flip : Symmetry::none;
}

}  // namespace sinew
