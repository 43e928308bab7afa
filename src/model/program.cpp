#include "model/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sinew/error.hpp>
#include "schedule/form.hpp"

namespace sinew {
namespace {

constexpr std::uint32_t kMostRounds = 1U << 24, kMostChannels = 1U << 4;

bool is_free_copy(const Step& step, bool in_place) {
  return in_place && step.op == Op::copy && step.src.buf == Buf::input &&
         step.dst.buf == Buf::output;
}

Item item_of(const Step& step) {
  const bool of_group = is_board_op(step.op) && step.peer < 0;
  return {.round = step.round & (kMostRounds - 1),
          .channel = step.channel & (kMostChannels - 1U),
          .op = static_cast<std::uint32_t>(step.op),
          .peer = of_group ? -2 - step.group : step.peer,
          .chunks = std::max(step.src.count, step.dst.count)};
}

// Within a round: what a rank does alone, then its sends and its receives by distance.
struct Order {
  int rank, size;
  [[nodiscard]] int group(const Item& item) const {
    return item.sends() ? 1 : item.receives() ? 2 : 0;
  }
  [[nodiscard]] int distance(const Item& item) const {
    const int ahead = item.sends() ? item.peer - rank : rank - item.peer;
    return ahead < 0 ? ahead + size : ahead;
  }
  bool operator()(const Item& a, const Item& b) const {
    if (a.round != b.round) return a.round < b.round;
    if (a.channel != b.channel) return a.channel < b.channel;
    if (group(a) != group(b)) return group(a) < group(b);
    return group(a) > 0 && distance(a) < distance(b);
  }
};

}  // namespace

Program compile(const Schedule& schedule, bool in_place) {
  Program program;
  program.groups = schedule.groups;
  program.rounds = schedule.rounds;
  program.message_chunks = std::max(schedule.chunks[0], schedule.chunks[1]);
  program.board_chunks = schedule.by_reference ? 0 : schedule.chunks[3];
  program.by_reference = schedule.by_reference;
  program.items.reserve(schedule.steps.size());
  for (const auto& step : schedule.steps) {
    if (step.round >= kMostRounds || step.channel >= kMostChannels)
      throw Error(Errc::unsupported,
                  fmt::format("{} of {} ranks has more than {} rounds or {} channels, too many to "
                              "simulate",
                              schedule.name, schedule.size, kMostRounds, kMostChannels));
    if (is_free_copy(step, in_place)) continue;
    program.items.push_back(item_of(step));
    // To say where something lies takes a word, whatever its length.
    if (schedule.by_reference && step.op == Op::publish) program.items.back().chunks = 0;
    program.channels = std::max(program.channels, step.channel + 1U);
    program.board_ops = program.board_ops || is_board_op(step.op);
  }
  const Order order{schedule.rank, schedule.size};
  if (!std::is_sorted(program.items.begin(), program.items.end(), order))
    std::stable_sort(program.items.begin(), program.items.end(), order);
  return program;
}

}  // namespace sinew
