// Judging: races, what must not be overwritten, and whether the result is what was promised.
#include <set>

#include "schedule/simulation.hpp"

namespace sinew::detail {

void Simulation::check_channels(const Schedule& schedule) {
  std::map<Cell, int> writer, reader;
  for (const auto& step : schedule.steps)
    for (const auto& touch : touches(schedule.rank, step)) {
      auto& mine = touch.write ? writer : reader;
      const auto [at, fresh] = mine.try_emplace(touch.cell, step.channel);
      const auto other = writer.find(touch.cell);
      if ((touch.write && !fresh && at->second != step.channel) ||
          (other != writer.end() && other->second != step.channel) ||
          (touch.write && reader.contains(touch.cell) && reader[touch.cell] != step.channel))
        fail(schedule.rank, step.round,
             fmt::format("channels race: {} is written by one channel and used by another",
                         describe(schedule.rank, step)));
    }
}

void Simulation::check_exposed(int rank, const Step& step, const std::vector<int>& group) {
  for (const int member : group) {
    const auto& steps = world_.ranks[index(member)].steps;
    const bool exposed = std::any_of(steps.begin(), steps.end(), [&](const Step& other) {
      return other.op == Op::publish && other.board.count == 0 && other.round < step.round;
    });
    if (!exposed)
      fail(rank, step.round,
           fmt::format(
               "{} uses the buffers of rank {}, which does not publish them in an earlier round",
               describe(rank, step), member));
  }
}

void Simulation::check_remote(int rank, const Step& step, Cell cell) {
  const auto& remote = remote_[index(rank)][cell];
  if (!remote || remote->first == rank) return;
  if (heard_[index(rank)][index(remote->first)] < std::int64_t{remote->second})
    fail(rank, step.round,
         fmt::format("{} uses a chunk that rank {} writes in round {}, without waiting for it",
                     describe(rank, step), remote->first, remote->second));
}

void Simulation::note_readers() {
  for (const auto& schedule : world_.ranks)
    for (const auto& step : schedule.steps) {
      if (step.op != Op::gather_copy && step.op != Op::gather_reduce) continue;
      const auto group = step.peer >= 0 ? std::vector<int>{step.peer} : members(schedule, step);
      for (const int member : group)
        for (std::uint32_t i = 0; member != schedule.rank && i < step.board.count; ++i)
          readers_[{member, step.board.first + i}].push_back({schedule.rank, step.round});
    }
}

void Simulation::check_still_read(int rank, const Step& step, Cell cell) {
  if (conditions_.exposure != Exposure::referenced) return;
  auto& memory = memories_[index(rank)];
  for (const auto& [chunk, publisher] : published_[index(rank)]) {
    if (memory.cell(publisher->src, chunk - publisher->board.first) != cell) continue;
    for (const auto& [reader, round] : readers_[{rank, chunk}])
      if (heard_[index(rank)][index(reader)] < std::int64_t{round})
        fail(rank, step.round,
             fmt::format("{} overwrites a published chunk that rank {} may still be reading",
                         describe(rank, step), reader));
  }
}

void Simulation::check_finished() {
  std::string waiting;
  Fault first{-1, 0, {}};
  int shown = 0;
  for (int rank = 0; rank < size(); ++rank)
    for (const auto& stream : streams_[index(rank)]) {
      if (stream.finished()) continue;
      if (first.rank < 0) first = {rank, stream.round(), {}};
      if (++shown > 4) continue;
      for (std::size_t i = stream.next; i < stream.end; ++i)
        if (!stream.done[i - stream.next]) {
          waiting += fmt::format("; {}", describe(rank, *stream.steps[i]));
          break;
        }
    }
  if (shown > 4) waiting += fmt::format("; and {} more", shown - 4);
  if (shown > 0)
    fail(first.rank, first.round, fmt::format("deadlock: nothing can move{}", waiting));
  for (const auto& [key, lane] : lanes_)
    for (const auto& message : lane)
      if (!message.taken)
        fail(std::get<0>(key), message.step->round,
             fmt::format("{}, but rank {} never receives it",
                         describe(std::get<0>(key), *message.step), std::get<1>(key)));
}

void Simulation::check_all_read() {
  for (int rank = 0; world_.ranks.front().by_reference && rank < size(); ++rank)
    for (const auto& [chunk, publisher] : published_[index(rank)])
      for (const auto& [reader, round] : readers_[{rank, chunk}])
        if (heard_[index(rank)][index(reader)] < std::int64_t{round})
          fail(rank, world_.ranks[index(rank)].rounds,
               fmt::format("{} is read by rank {} in round {}, and rank {} may be done and change "
                           "it before that: it waits for nothing that comes after",
                           describe(rank, *publisher), reader, round, rank));
}

std::vector<TermId> Simulation::expected(int rank, std::uint32_t chunk) const {
  const auto& schedule = world_.ranks[index(rank)];
  const auto me = static_cast<std::uint32_t>(rank);
  std::vector<TermId> leaves;
  const auto everyone = [&](std::uint32_t input_chunk) {
    for (int from = 0; from < size(); ++from) leaves.push_back(terms_.leaf(from, input_chunk));
  };
  const auto unit_in = schedule.chunks[0], unit_out = schedule.chunks[1];
  switch (world_.collective) {
    case Collective::allreduce:
    case Collective::reduce:
      everyone(chunk);
      break;
    case Collective::broadcast:
      leaves.push_back(terms_.leaf(world_.root, chunk));
      break;
    case Collective::allgather:
    case Collective::gather:
      leaves.push_back(terms_.leaf(static_cast<int>(chunk / unit_in), chunk % unit_in));
      break;
    case Collective::reduce_scatter:
      everyone(me * unit_out + chunk);
      break;
    case Collective::scatter:
      leaves.push_back(terms_.leaf(world_.root, me * unit_out + chunk));
      break;
    case Collective::alltoall: {
      const auto part = unit_in / static_cast<std::uint32_t>(size());
      leaves.push_back(terms_.leaf(static_cast<int>(chunk / part), me * part + chunk % part));
      break;
    }
    case Collective::barrier:
      break;
  }
  return leaves;
}

Verdict Simulation::check_result() {
  Verdict verdict{std::nullopt, true, true};
  if (world_.collective == Collective::barrier) check_barrier();
  std::map<std::uint32_t, TermId> by_chunk;  // rank 0's order of each allreduce chunk
  for (int rank = 0; rank < size(); ++rank) {
    auto& memory = memories_[index(rank)];
    if (!memory.has_output()) continue;
    for (std::uint32_t chunk = 0; chunk < world_.ranks[index(rank)].chunks[1]; ++chunk) {
      const Cell cell = memory.cell({Buf::output, 0, 1}, chunk);
      const TermId value = memory[cell];
      const auto leaves = expected(rank, chunk);
      check_chunk(rank, chunk, cell, value, leaves);
      TermId in_order = leaves.front();
      for (std::size_t i = 1; i < leaves.size(); ++i)
        in_order = terms_.combine(in_order, leaves[i]);
      verdict.rank_order &= value == in_order;
      if (world_.collective == Collective::allreduce)
        verdict.same_order &= by_chunk.try_emplace(chunk, value).first->second == value;
    }
  }
  return verdict;
}

void Simulation::check_chunk(int rank, std::uint32_t chunk, Cell cell, TermId value,
                             const std::vector<TermId>& leaves) {
  const Step* writer = writer_[index(rank)][cell];
  const auto round = writer ? writer->round : 0;
  const auto story = [&] {
    return writer ? fmt::format("last written in round {} by {}", round, name(writer->op))
                  : std::string("never written");
  };
  if (value == kUndefined)
    fail(rank, round,
         fmt::format("rank {} ends with nothing in output chunk {} ({})", rank, chunk, story()));
  if (const auto& remote = remote_[index(rank)][cell])
    if (remote->first != rank &&
        heard_[index(rank)][index(remote->first)] < std::int64_t{remote->second})
      fail(rank, remote->second,
           fmt::format("rank {} ends without waiting for rank {}, which writes its output chunk "
                       "{} in round {}",
                       rank, remote->first, chunk, remote->second));
  auto counts = terms_.leaves(value);
  std::string wrong;
  for (const TermId leaf : leaves) {
    const auto at = counts.find(leaf);
    if (at == counts.end())
      wrong += fmt::format("; {} is missing", terms_.leaf_name(leaf));
    else if (at->second > 1)
      wrong += fmt::format("; {} is counted {} times", terms_.leaf_name(leaf), at->second);
    if (at != counts.end()) counts.erase(at);
  }
  for (const auto& [leaf, count] : counts)
    wrong += fmt::format("; {} does not belong there", terms_.leaf_name(leaf));
  if (!wrong.empty())
    fail(rank, round,
         fmt::format("rank {} ends with a wrong output chunk {} ({}){}", rank, chunk, story(),
                     wrong));
}

void Simulation::check_barrier() {
  for (int rank = 0; rank < size(); ++rank)
    for (int other = 0; other < size(); ++other)
      if (!knows_[index(rank)][index(other)])
        fail(rank, world_.ranks[index(rank)].rounds,
             fmt::format("rank {} may leave the barrier before rank {} has entered it", rank,
                         other));
}

std::string Simulation::describe(int rank, const Step& step) {
  const auto range = [](const Chunks& c) {
    return c.count == 1 ? fmt::format("{} {}", name(c.buf), c.first)
                        : fmt::format("{} {}..{}", name(c.buf), c.first, c.first + c.count);
  };
  std::string text = fmt::format("rank {} round {}: {}", rank, step.round, name(step.op));
  if (step.src.count > 0) text += " " + range(step.src);
  if (step.board.count > 0)
    text += fmt::format("{} {}", step.op == Op::publish ? " as" : " of", range(step.board));
  if (step.op == Op::send)
    text += fmt::format(" to rank {}", step.peer);
  else if (step.peer >= 0)
    text += fmt::format(" from rank {}", step.peer);
  if (step.dst.count > 0) text += " into " + range(step.dst);
  return text;
}

}  // namespace sinew::detail
