// The verifier runs a world of schedules on symbolic values. Each memory cell is one chunk; its
// value says which input chunks it combines, and in what order.
#include <sinew/verify.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "schedule/form.hpp"
#include "schedule/terms.hpp"

namespace sinew {
namespace {

using Cell = std::uint32_t;              // index into one rank's memory
using Lane = std::tuple<int, int, int>;  // source, destination, channel

struct Fail {
  Fault fault;
};
[[noreturn]] void fail(int rank, std::uint32_t round, std::string why) {
  throw Fail{{rank, round, std::move(why)}};
}

// One rank's memory: four buffers, two of which overlay each other in an in-place call.
class Memory {
 public:
  Memory(const World& world, const Schedule& schedule, Placement placement) : schedule_(schedule) {
    const auto rank = static_cast<std::uint32_t>(schedule.rank);
    const bool is_root = schedule.rank == world.root;
    const auto in = schedule.chunks[0], out = schedule.chunks[1];
    has_input_ = is_root || (world.collective != Collective::broadcast &&
                             world.collective != Collective::scatter);
    has_output_ = is_root || (world.collective != Collective::reduce &&
                              world.collective != Collective::gather);
    base_ = {0, in, in + out, in + out + schedule.chunks[2]};
    values_.resize(base_[3] + schedule.chunks[3], kUndefined);
    if (placement == Placement::in_place && has_input_ && has_output_) {
      in_place_ = true;
      // The smaller buffer lies inside the larger, at this rank's part.
      if (in <= out) base_[0] = base_[1] + (in < out ? rank * in : 0);
      if (in > out) base_[1] = base_[0] + rank * out;
    }
  }

  [[nodiscard]] Cell cell(const Chunks& range, std::uint32_t i) const {
    return base_[static_cast<std::size_t>(range.buf)] + range.first + i;
  }
  // In place, a copy onto itself is nothing at all.
  [[nodiscard]] bool is_self_copy(const Step& step) const {
    return step.op == Op::copy && cell(step.src, 0) == cell(step.dst, 0);
  }
  TermId& operator[](Cell cell) { return values_[cell]; }
  [[nodiscard]] bool readable(Buf buf) const { return buf != Buf::input || has_input_; }
  [[nodiscard]] bool writable(Buf buf) const {
    return buf == Buf::output ? has_output_ : buf != Buf::input;
  }
  [[nodiscard]] bool has_input() const { return has_input_; }
  [[nodiscard]] bool has_output() const { return has_output_; }
  [[nodiscard]] std::size_t cells() const { return values_.size(); }

 private:
  const Schedule& schedule_;
  std::array<Cell, 4> base_{};
  std::vector<TermId> values_;
  bool has_input_ = true, has_output_ = true, in_place_ = false;
};

struct Touch {
  Cell cell;
  bool write;
};

// A channel of one rank: its steps, and how far it is.
struct Stream {
  std::vector<const Step*> steps;
  std::size_t next = 0;  // first step of the current round
  std::size_t end = 0;   // one past its last step
  std::vector<bool> done;
  [[nodiscard]] bool finished() const { return next == steps.size(); }
  [[nodiscard]] std::uint32_t round() const { return steps[next]->round; }
};

struct Message {
  const Step* step;
  std::vector<TermId> values;
  bool taken = false;
};

class Simulation {
 public:
  Simulation(const World& world, Conditions conditions)
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

  Verdict run() {
    for (int rank = 0; rank < size(); ++rank)
      for (auto& stream : streams_[index(rank)]) begin_round(rank, stream);
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < size(); ++rank)
        for (auto& stream : streams_[index(rank)]) moved |= advance(rank, stream);
    }
    check_finished();
    return check_result();
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  static std::size_t rank_of(const Schedule& schedule) { return index(schedule.rank); }
  [[nodiscard]] int size() const { return static_cast<int>(world_.ranks.size()); }

  void split_channels(const Schedule& schedule) {
    std::map<int, Stream> by_channel;
    for (const auto& step : schedule.steps) by_channel[step.channel].steps.push_back(&step);
    auto& streams = streams_.emplace_back();
    for (auto& [channel, stream] : by_channel) streams.push_back(std::move(stream));
  }

  // Channels run independently, so what one writes no other may touch.
  void check_channels(const Schedule& schedule) {
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

  // Cells of its own rank that a step reads or writes.
  std::vector<Touch> touches(int rank, const Step& step) {
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

  // Steps of a round run in any order: no two may meet in a cell that one of them writes.
  void begin_round(int rank, Stream& stream) {
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
        check_remote(rank, step, cell, write);
      }
      if (step.op == Op::send) post(rank, step);
    }
  }

  void post(int rank, const Step& step) {
    Message message{&step, {}};
    for (std::uint32_t i = 0; i < step.src.count; ++i)
      message.values.push_back(read(rank, step, step.src, i));
    message.values.shrink_to_fit();
    const Lane lane{rank, step.peer, step.channel};
    lanes_[lane].push_back(std::move(message));
    known_at_send_[lane].push_back(knows_[index(rank)]);
  }

  bool advance(int rank, Stream& stream) {
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

  bool attempt(int rank, const Step& step) {
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

  bool was_taken(int rank, const Step& step) {
    auto& lane = lanes_[{rank, step.peer, step.channel}];
    const auto at =
        std::find_if(lane.begin(), lane.end(), [&](const Message& m) { return m.step == &step; });
    return at == lane.end() || at->taken;
  }

  bool receive(int rank, const Step& step) {
    const Lane key{step.peer, rank, step.channel};
    auto& lane = lanes_[key];
    const auto at =
        std::find_if(lane.begin(), lane.end(), [](const Message& m) { return !m.taken; });
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

  bool local(int rank, const Step& step) {
    if (memories_[index(rank)].is_self_copy(step)) return true;
    for (std::uint32_t i = 0; i < step.dst.count; ++i) {
      TermId value = read(rank, step, step.src, i);
      if (step.op == Op::reduce) value = terms_.combine(read(rank, step, step.dst, i), value);
      write(rank, step, step.dst, i, value);
    }
    return true;
  }

  bool publish(int rank, const Step& step) {
    auto& published = published_[index(rank)];
    for (std::uint32_t i = 0; i < step.board.count; ++i) {
      const auto chunk = step.board.first + i;
      if (!published.try_emplace(chunk, &step).second)
        fail(rank, step.round,
             fmt::format("{} publishes board chunk {} a second time", describe(rank, step), chunk));
      memories_[index(rank)][memories_[index(rank)].cell(step.board, i)] =
          read(rank, step, step.src, i);
    }
    return true;
  }

  // A gather in round k begins when every member it reads has completed its rounds before k.
  bool gather(int rank, const Step& step) {
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

  // Whoever works in others' memory must know that they have come, and where it lies: a publish
  // without chunks in an earlier round says both.
  void check_exposed(int rank, const Step& step, const std::vector<int>& group) {
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

  void reduce_everywhere(int rank, const Step& step, const std::vector<int>& group) {
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
        memories_[index(member)][cell] = value;
        writer_[index(member)][cell] = &step;
      }
    }
  }

  template <class Get>
  TermId fold(const std::vector<int>& group, Get get) {
    TermId value = kUndefined;
    for (const int member : group) {
      const TermId next = get(member);
      value = value == kUndefined ? next : terms_.combine(value, next);
    }
    return value;
  }

  TermId on_board(int rank, const Step& step, int member, std::uint32_t i) {
    const auto at = published_[index(member)].find(step.board.first + i);
    if (at == published_[index(member)].end() || at->second->round >= step.round)
      fail(rank, step.round,
           fmt::format(
               "{} reads board chunk {} of rank {}, which is not published in an earlier round",
               describe(rank, step), step.board.first + i, member));
    return memories_[index(member)][memories_[index(member)].cell(step.board, i)];
  }

  [[nodiscard]] std::uint32_t completed(int rank) const {
    for (const auto& stream : streams_[index(rank)])
      if (!stream.finished() && stream.steps[stream.next]->channel == 0) return stream.round();
    return world_.ranks[index(rank)].rounds;
  }

  TermId read(int rank, const Step& step, const Chunks& range, std::uint32_t i) {
    auto& memory = memories_[index(rank)];
    const TermId value = memory[memory.cell(range, i)];
    if (value == kUndefined)
      fail(rank, step.round,
           fmt::format("{} reads {} chunk {}, which holds nothing yet", describe(rank, step),
                       name(range.buf), range.first + i));
    return value;
  }

  void write(int rank, const Step& step, const Chunks& range, std::uint32_t i, TermId value) {
    auto& memory = memories_[index(rank)];
    const Cell cell = memory.cell(range, i);
    check_still_read(rank, step, cell);
    memory[cell] = value;
    writer_[index(rank)][cell] = &step;
  }

  // What another rank wrote into my memory is mine to touch only once I know it has finished.
  void check_remote(int rank, const Step& step, Cell cell, bool) {
    const auto& remote = remote_[index(rank)][cell];
    if (!remote || remote->first == rank) return;
    if (heard_[index(rank)][index(remote->first)] < std::int64_t{remote->second})
      fail(rank, step.round,
           fmt::format("{} uses a chunk that rank {} writes in round {}, without waiting for it",
                       describe(rank, step), remote->first, remote->second));
  }

  void note_readers() {
    for (const auto& schedule : world_.ranks)
      for (const auto& step : schedule.steps) {
        if (step.op != Op::gather_copy && step.op != Op::gather_reduce) continue;
        const auto group = step.peer >= 0 ? std::vector<int>{step.peer} : members(schedule, step);
        for (const int member : group)
          for (std::uint32_t i = 0; member != schedule.rank && i < step.board.count; ++i)
            readers_[{member, step.board.first + i}].push_back({schedule.rank, step.round});
      }
  }

  // Published by reference: the source must stay as it is until each reader is known to be done.
  void check_still_read(int rank, const Step& step, Cell cell) {
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

  void learn(int rank, const std::vector<bool>& from) {
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i]) knows_[index(rank)][i] = true;
  }

  void check_finished() {
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

  // The input leaves that output chunk `chunk` of `rank` must combine, in rank order.
  std::vector<TermId> expected(int rank, std::uint32_t chunk) const {
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

  Verdict check_result() {
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

  void check_chunk(int rank, std::uint32_t chunk, Cell cell, TermId value,
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

  void check_barrier() {
    for (int rank = 0; rank < size(); ++rank)
      for (int other = 0; other < size(); ++other)
        if (!knows_[index(rank)][index(other)])
          fail(rank, world_.ranks[index(rank)].rounds,
               fmt::format("rank {} may leave the barrier before rank {} has entered it", rank,
                           other));
  }

  static std::string describe(int rank, const Step& step) {
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

  const World& world_;
  Conditions conditions_;
  Terms terms_;
  std::deque<Memory> memories_;
  std::vector<std::vector<Stream>> streams_;
  std::map<Lane, std::vector<Message>> lanes_;
  std::map<Lane, std::vector<std::vector<bool>>> known_at_send_;
  std::vector<std::vector<const Step*>> writer_;
  std::vector<std::vector<std::optional<std::pair<int, std::uint32_t>>>> remote_;
  std::vector<std::map<std::uint32_t, const Step*>> published_;
  std::map<std::pair<int, std::uint32_t>, std::vector<std::pair<int, std::uint32_t>>> readers_;
  std::vector<std::vector<std::int64_t>> heard_;  // [r][m]: last round of m that r has waited for
  std::vector<std::vector<bool>> knows_;          // [r][m]: r's state depends on m having begun
};

}  // namespace

Verdict verify(const World& world, Conditions conditions) {
  if (auto why = malformed(world)) return {Fault{-1, 0, *why}, false, false};
  try {
    return Simulation(world, conditions).run();
  } catch (Fail& fail) {
    return {std::move(fail.fault), false, false};
  }
}

}  // namespace sinew
