// Running: rounds, messages, the board.
#include "schedule/simulation.hpp"

namespace sinew::detail {

Simulation::Simulation(const World& world, Conditions conditions)
    : world_(world),
      conditions_(conditions),
      terms_(static_cast<int>(world.ranks.size()), std::max(1U, world.ranks[0].chunks[0])),
      heard_(world.ranks.size(), std::vector<std::int64_t>(world.ranks.size(), -1)),
      knows_(world.ranks.size(), std::vector<bool>(world.ranks.size(), false)) {
  for (const auto& schedule : world.ranks) {
    auto& memory = memories_.emplace_back(world, schedule, conditions.placement);
    writer_.emplace_back(memory.cells(), nullptr);
    remote_.emplace_back(memory.cells());
    published_.emplace_back();
    knows_[rank_of(schedule)][rank_of(schedule)] = true;
    if (memory.has_input())
      for (std::uint32_t i = 0; i < schedule.chunks[0]; ++i)
        memory[memory.cell({Buf::input, 0, 1}, i)] = terms_.leaf(schedule.rank, i);
    split_channels(schedule);
    check_channels(schedule);
  }
  if (conditions.exposure == Exposure::referenced) note_readers();
}

Verdict Simulation::run() {
  for (int rank = 0; rank < size(); ++rank)
    for (auto& stream : streams_[index(rank)]) begin_round(rank, stream);
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < size(); ++rank)
      for (auto& stream : streams_[index(rank)]) moved |= advance(rank, stream);
  }
  check_finished();
  check_all_read();
  return check_result();
}

void Simulation::split_channels(const Schedule& schedule) {
  std::map<int, Stream> by_channel;
  for (const auto& step : schedule.steps) by_channel[step.channel].steps.push_back(&step);
  auto& streams = streams_.emplace_back();
  for (auto& [channel, stream] : by_channel) streams.push_back(std::move(stream));
}

std::vector<Touch> Simulation::touches(int rank, const Step& step) {
  auto& memory = memories_[index(rank)];
  std::vector<Touch> result;
  if (memory.is_self_copy(step)) return result;
  const bool reads_dst = step.op == Op::recv_reduce || step.op == Op::reduce;
  const bool has_src =
      step.op != Op::recv && step.op != Op::recv_reduce && step.op != Op::gather_copy;
  const bool has_dst = step.op != Op::send && step.op != Op::publish;
  if (has_src && step.src.count > 0) {
    if (!memory.readable(step.src.buf))
      fail(rank, step.round,
           fmt::format("{} reads input, which only the root has", describe(rank, step)));
    for (std::uint32_t i = 0; i < step.src.count; ++i)
      result.push_back({memory.cell(step.src, i), false});
  }
  if (has_dst && step.dst.count > 0) {
    if (!memory.writable(step.dst.buf))
      fail(rank, step.round,
           fmt::format("{} writes {}", describe(rank, step),
                       step.dst.buf == Buf::input ? "input, which is read-only"
                                                  : "output, which only the root has"));
    for (std::uint32_t i = 0; i < step.dst.count; ++i) {
      if (reads_dst) result.push_back({memory.cell(step.dst, i), false});
      result.push_back({memory.cell(step.dst, i), true});
    }
  }
  if (has_src && has_dst && step.src.count > 0 && step.dst.count > 0) {
    const Cell from = memory.cell(step.src, 0), to = memory.cell(step.dst, 0);
    if (from != to && from < to + step.dst.count && to < from + step.src.count)
      fail(rank, step.round, fmt::format("{} overlaps itself", describe(rank, step)));
  }
  if (step.op == Op::publish)
    for (std::uint32_t i = 0; i < step.board.count; ++i)
      result.push_back({memory.cell(step.board, i), true});
  return result;
}

void Simulation::begin_round(int rank, Stream& stream) {
  if (stream.finished()) return;
  stream.end = stream.next;
  while (stream.end < stream.steps.size() && stream.steps[stream.end]->round == stream.round())
    ++stream.end;
  stream.done.assign(stream.end - stream.next, false);
  std::map<Cell, std::pair<const Step*, bool>> used;
  for (std::size_t i = stream.next; i < stream.end; ++i) {
    const Step& step = *stream.steps[i];
    for (const auto& [cell, write] : touches(rank, step)) {
      const auto [at, fresh] = used.try_emplace(cell, &step, write);
      if (!fresh && at->second.first != &step && (write || at->second.second))
        fail(rank, step.round,
             fmt::format("{} and {} use the same chunk in one round, and one of them writes it",
                         describe(rank, *at->second.first), describe(rank, step)));
      at->second.second |= write;
      check_remote(rank, step, cell);
    }
    if (step.op == Op::send) post(rank, step);
  }
}

void Simulation::post(int rank, const Step& step) {
  Sent message{&step, {}};
  for (std::uint32_t i = 0; i < step.src.count; ++i)
    message.values.push_back(read(rank, step, step.src, i));
  message.values.shrink_to_fit();
  const Lane lane{rank, step.peer, step.channel};
  lanes_[lane].push_back(std::move(message));
  known_at_send_[lane].push_back(knows_[index(rank)]);
}

bool Simulation::advance(int rank, Stream& stream) {
  bool moved = false;
  while (!stream.finished()) {
    bool all = true;
    for (std::size_t i = stream.next; i < stream.end; ++i) {
      auto done = stream.done[i - stream.next];
      if (!done && attempt(rank, *stream.steps[i])) {
        stream.done[i - stream.next] = true;
        moved = true;
      }
      all &= stream.done[i - stream.next];
    }
    if (!all) return moved;
    stream.next = stream.end;
    begin_round(rank, stream);
  }
  return moved;
}

bool Simulation::attempt(int rank, const Step& step) {
  switch (step.op) {
    case Op::send:
      return conditions_.sends == Sends::buffered || was_taken(rank, step);
    case Op::recv:
    case Op::recv_reduce:
      return receive(rank, step);
    case Op::copy:
    case Op::reduce:
      return local(rank, step);
    case Op::publish:
      return publish(rank, step);
    default:
      return gather(rank, step);
  }
}

bool Simulation::was_taken(int rank, const Step& step) {
  auto& lane = lanes_[{rank, step.peer, step.channel}];
  const auto at =
      std::find_if(lane.begin(), lane.end(), [&](const Sent& m) { return m.step == &step; });
  return at == lane.end() || at->taken;
}

bool Simulation::receive(int rank, const Step& step) {
  const Lane key{step.peer, rank, step.channel};
  auto& lane = lanes_[key];
  const auto at = std::find_if(lane.begin(), lane.end(), [](const Sent& m) { return !m.taken; });
  if (at == lane.end()) return false;
  if (at->values.size() != step.dst.count)
    fail(rank, step.round,
         fmt::format("{} but rank {} sends {} chunk(s) in its round {}", describe(rank, step),
                     step.peer, at->values.size(), at->step->round));
  for (std::uint32_t i = 0; i < step.dst.count; ++i) {
    TermId value = at->values[i];
    if (step.op == Op::recv_reduce) value = terms_.combine(read(rank, step, step.dst, i), value);
    write(rank, step, step.dst, i, value);
  }
  at->taken = true;
  learn(rank, known_at_send_[key][static_cast<std::size_t>(at - lane.begin())]);
  return true;
}

bool Simulation::local(int rank, const Step& step) {
  if (memories_[index(rank)].is_self_copy(step)) return true;
  for (std::uint32_t i = 0; i < step.dst.count; ++i) {
    TermId value = read(rank, step, step.src, i);
    if (step.op == Op::reduce) value = terms_.combine(read(rank, step, step.dst, i), value);
    write(rank, step, step.dst, i, value);
  }
  return true;
}

bool Simulation::publish(int rank, const Step& step) {
  auto& published = published_[index(rank)];
  for (std::uint32_t i = 0; i < step.board.count; ++i) {
    const auto chunk = step.board.first + i;
    if (!published.try_emplace(chunk, &step).second)
      fail(rank, step.round,
           fmt::format("{} publishes board chunk {} a second time", describe(rank, step), chunk));
    set(rank, memories_[index(rank)].cell(step.board, i), step, read(rank, step, step.src, i));
  }
  return true;
}

bool Simulation::gather(int rank, const Step& step) {
  const auto group =
      step.peer >= 0 ? std::vector<int>{step.peer} : members(world_.ranks[index(rank)], step);
  for (const int member : group)
    if (member != rank && completed(member) < step.round) return false;
  for (const int member : group) {
    heard_[index(rank)][index(member)] =
        std::max(heard_[index(rank)][index(member)], std::int64_t{step.round} - 1);
    learn(rank, knows_[index(member)]);
  }
  if (step.op == Op::gather_reduce_all) check_exposed(rank, step, group);
  if (step.op == Op::gather_copy) {
    for (std::uint32_t i = 0; i < step.board.count; ++i)
      write(rank, step, step.dst, i, on_board(rank, step, step.peer, i));
  } else if (step.op == Op::gather_reduce) {
    for (std::uint32_t i = 0; i < step.dst.count; ++i)
      write(rank, step, step.dst, i, fold(group, [&](int member) {
              return member == rank ? read(rank, step, step.src, i)
                                    : on_board(rank, step, member, i);
            }));
  } else {
    reduce_everywhere(rank, step, group);
  }
  return true;
}

void Simulation::reduce_everywhere(int rank, const Step& step, const std::vector<int>& group) {
  for (std::uint32_t i = 0; i < step.dst.count; ++i) {
    const TermId value = fold(group, [&](int member) { return read(member, step, step.src, i); });
    for (const int member : group) {
      const Cell cell = memories_[index(member)].cell(step.dst, i);
      auto& remote = remote_[index(member)][cell];
      if (remote && remote->second == step.round && remote->first != rank)
        fail(rank, step.round,
             fmt::format("{} and rank {} both write rank {}'s chunk", describe(rank, step),
                         remote->first, member));
      remote = {rank, step.round};
      set(member, cell, step, value);
      writer_[index(member)][cell] = &step;
    }
  }
}

TermId Simulation::on_board(int rank, const Step& step, int member, std::uint32_t i) {
  const auto at = published_[index(member)].find(step.board.first + i);
  if (at == published_[index(member)].end() || at->second->round >= step.round)
    fail(rank, step.round,
         fmt::format(
             "{} reads board chunk {} of rank {}, which is not published in an earlier round",
             describe(rank, step), step.board.first + i, member));
  return memories_[index(member)][memories_[index(member)].cell(step.board, i)];
}

std::uint32_t Simulation::completed(int rank) const {
  for (const auto& stream : streams_[index(rank)])
    if (!stream.finished() && stream.steps[stream.next]->channel == 0) return stream.round();
  return world_.ranks[index(rank)].rounds;
}

TermId Simulation::read(int rank, const Step& step, const Chunks& range, std::uint32_t i) {
  auto& memory = memories_[index(rank)];
  const TermId value = memory[memory.cell(range, i)];
  if (value == kUndefined)
    fail(rank, step.round,
         fmt::format("{} reads {} chunk {}, which holds nothing yet", describe(rank, step),
                     name(range.buf), range.first + i));
  return value;
}

void Simulation::write(int rank, const Step& step, const Chunks& range, std::uint32_t i,
                       TermId value) {
  auto& memory = memories_[index(rank)];
  const Cell cell = memory.cell(range, i);
  check_still_read(rank, step, cell);
  set(rank, cell, step, value);
  writer_[index(rank)][cell] = &step;
}

void Simulation::set(int rank, Cell cell, const Step& step, TermId value) {
  memories_[index(rank)][cell] = value;
  if (watcher_) watcher_(rank, cell, step, value);
}

void Simulation::learn(int rank, const std::vector<bool>& from) {
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i]) knows_[index(rank)][i] = true;
}

}  // namespace sinew::detail
