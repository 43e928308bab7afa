#include "schedule/form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace sinew {
namespace {

using Complaint = std::optional<std::string>;

// A buffer in more chunks than this is a mistake, or meant to make us allocate. It also keeps
// (rank, chunk) and sums of chunk counts far from the end of 32 bits.
constexpr std::uint32_t kMostChunks = 1 << 16;

Complaint range_fault(const Schedule& schedule, const Chunks& range, std::string_view role) {
  const auto limit = schedule.chunks[static_cast<std::size_t>(range.buf)];
  if (range.count <= limit && range.first <= limit - range.count) return {};
  return fmt::format("{} {} {}..{} lies outside its {} chunks", role, name(range.buf), range.first,
                     std::uint64_t{range.first} + range.count, limit);
}

struct Operands {
  bool peer, src, dst, board;
};

Operands operands_of(Op op) {
  switch (op) {
    case Op::send:
      return {true, true, false, false};
    case Op::recv:
    case Op::recv_reduce:
      return {true, false, true, false};
    case Op::copy:
    case Op::reduce:
      return {false, true, true, false};
    case Op::publish:
      return {false, true, false, true};
    case Op::gather_copy:
      return {false, false, true, true};
    case Op::gather_reduce:
      return {false, true, true, true};
    case Op::gather_reduce_all:
      return {false, true, true, false};
  }
  return {};
}

Complaint board_fault(const Schedule& schedule, const Step& step) {
  if (step.channel != 0) return "board steps run on channel 0 only";
  if (step.group < -1 || step.group >= static_cast<int>(schedule.groups.size()))
    return fmt::format("group {} does not exist", step.group);
  if (step.group >= 0) {
    const auto& group = schedule.groups[static_cast<std::size_t>(step.group)];
    if (!std::binary_search(group.begin(), group.end(), schedule.rank))
      return fmt::format("group {} does not contain the rank", step.group);
    if (step.peer >= 0 && !std::binary_search(group.begin(), group.end(), step.peer))
      return fmt::format("peer {} is not in group {}", step.peer, step.group);
  }
  if (step.op == Op::publish && step.src.count != step.board.count)
    return "publishes another number of chunks than it names";
  if (step.op == Op::gather_copy && step.dst.count != step.board.count)
    return "gathers another number of chunks than it has room for";
  if (step.op == Op::gather_copy && step.peer < 0 && step.board.count > 0)
    return "copies chunks of no peer (without a peer it only waits)";
  if ((step.op == Op::gather_reduce || step.op == Op::gather_reduce_all) &&
      step.src.count != step.dst.count)
    return "reduces into another number of chunks";
  if (step.op == Op::gather_reduce && step.board.count != step.dst.count)
    return "reduces another number of published chunks than its own";
  return {};
}

Complaint reference_fault(const Schedule& schedule, const Step& step) {
  if (step.op == Op::gather_reduce_all)
    return "writes into memory that is published by reference, which can only be read";
  if (step.op == Op::publish && step.src.count > 0 && step.src.buf == Buf::scratch)
    return "only input and output can be published by reference";
  if (step.op == Op::gather_copy && step.peer == schedule.rank)
    return "reads its own memory by reference";
  return {};
}

Complaint step_fault(const Schedule& schedule, const Step& step) {
  const auto [peer, src, dst, board] = operands_of(step.op);
  if (peer && (step.peer < 0 || step.peer >= schedule.size || step.peer == schedule.rank))
    return fmt::format("peer {} is not another rank of {}", step.peer, schedule.size);
  if (!peer && (step.peer < -1 || step.peer >= schedule.size))
    return fmt::format("peer {} is not a rank of {}", step.peer, schedule.size);
  if ((src && step.src.buf == Buf::board) || (dst && step.dst.buf == Buf::board))
    return "only the board operand may name the board";
  if (board && step.board.buf != Buf::board) return "the board operand must name the board";
  if (step.round >= schedule.rounds)
    return fmt::format("round {} is past the schedule's {} rounds", step.round, schedule.rounds);
  if ((step.op == Op::copy || step.op == Op::reduce) && step.src.count != step.dst.count)
    return "source and destination differ in chunks";
  if (src)
    if (auto fault = range_fault(schedule, step.src, "source")) return fault;
  if (dst)
    if (auto fault = range_fault(schedule, step.dst, "destination")) return fault;
  if (board)
    if (auto fault = range_fault(schedule, step.board, "board range")) return fault;
  if (!is_board_op(step.op)) return {};
  if (auto fault = board_fault(schedule, step)) return fault;
  return schedule.by_reference ? reference_fault(schedule, step) : Complaint{};
}

// Which chunk counts the collective asks of (input, output): a rank's part is `unit` chunks.
Complaint shape_fault(const World& world, const Schedule& schedule) {
  const auto input = schedule.chunks[static_cast<std::size_t>(Buf::input)];
  const auto output = schedule.chunks[static_cast<std::size_t>(Buf::output)];
  const auto size = static_cast<std::uint32_t>(schedule.size);
  const auto want = [&](bool holds, std::string_view text) -> Complaint {
    if (holds) return {};
    return fmt::format("{} needs {}, but input has {} and output {} chunks", name(world.collective),
                       text, input, output);
  };
  switch (world.collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::broadcast:
      return want(input == output && input > 0, "as many chunks in as out");
    case Collective::allgather:
    case Collective::gather:
      return want(input > 0 && output == input * size, "one part in and all parts out");
    case Collective::reduce_scatter:
    case Collective::scatter:
      return want(output > 0 && input == output * size, "all parts in and one part out");
    case Collective::alltoall:
      return want(input == output && input > 0 && input % size == 0, "a part for each rank");
    case Collective::barrier:
      return want(input == 0 && output == 0, "no data");
  }
  return {};
}

Complaint schedule_fault(const World& world, std::size_t index) {
  const auto& schedule = world.ranks[index];
  const auto& first = world.ranks.front();
  if (schedule.rank != static_cast<int>(index) ||
      schedule.size != static_cast<int>(world.ranks.size()))
    return fmt::format("says it is rank {} of {}", schedule.rank, schedule.size);
  for (const auto count : schedule.chunks)
    if (count > kMostChunks)
      return fmt::format("cuts a buffer into {} chunks; {} are the most", count, kMostChunks);
  const auto shared_cuts = [](const Schedule& s) {  // scratch is a rank's own affair
    return std::tuple(s.chunks[0], s.chunks[1], s.chunks[3], s.rounds, s.by_reference);
  };
  if (shared_cuts(schedule) != shared_cuts(first) || schedule.groups != first.groups)
    return "cuts its buffers, rounds or groups otherwise than rank 0";
  for (const auto& group : schedule.groups)
    if (group.empty() || !std::is_sorted(group.begin(), group.end(), std::less_equal<>()) ||
        group.front() < 0 || group.back() >= schedule.size)
      return "has a group that is empty, unordered or names ranks that do not exist";
  if (auto fault = shape_fault(world, schedule)) return fault;
  if (schedule.scratch_like.size() != schedule.chunks[2])
    return fmt::format("names the sizes of {} of its {} scratch chunks",
                       schedule.scratch_like.size(), schedule.chunks[2]);
  for (const auto like : schedule.scratch_like)
    if (like >= std::max(schedule.chunks[0], schedule.chunks[1]))
      return fmt::format("has a scratch chunk like chunk {}, which does not exist", like);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const auto& step = schedule.steps[i];
    if (auto fault = step_fault(schedule, step))
      return fmt::format("step {} ({}): {}", i, name(step.op), *fault);
    if (i > 0 && std::tie(step.round, step.channel) <
                     std::tie(schedule.steps[i - 1].round, schedule.steps[i - 1].channel))
      return fmt::format("step {} ({}): comes after a later round or channel", i, name(step.op));
  }
  return {};
}

}  // namespace

bool is_board_op(Op op) noexcept { return op >= Op::publish; }

std::vector<int> members(const Schedule& schedule, const Step& step) {
  if (step.group >= 0) return schedule.groups[static_cast<std::size_t>(step.group)];
  std::vector<int> all(static_cast<std::size_t>(schedule.size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::optional<std::string> malformed(const World& world) {
  if (world.ranks.empty()) return "there are no ranks";
  if (world.root < 0 || world.root >= static_cast<int>(world.ranks.size()))
    return fmt::format("root {} is not a rank of {}", world.root, world.ranks.size());
  for (std::size_t rank = 0; rank < world.ranks.size(); ++rank)
    if (auto fault = schedule_fault(world, rank)) return fmt::format("rank {} {}", rank, *fault);
  return {};
}

}  // namespace sinew
