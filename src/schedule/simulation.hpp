// The verifier's machine: runs a world of schedules on symbolic values. Each memory cell is one
// chunk; its value says which input chunks it combines, and in what order.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <sinew/verify.hpp>
#include "schedule/form.hpp"
#include "schedule/terms.hpp"

namespace sinew::detail {

using Cell = std::uint32_t;              // index into one rank's memory
using Lane = std::tuple<int, int, int>;  // source, destination, channel

struct Fail {
  Fault fault;
};
[[noreturn]] inline void fail(int rank, std::uint32_t round, std::string why) {
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
  bool has_input_ = true, has_output_ = true;
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

struct Sent {
  const Step* step;
  std::vector<TermId> values;
  bool taken = false;
};

class Simulation {
 public:
  Simulation(const World& world, Conditions conditions);

  /// Told of every chunk that a step gives a value: whose memory, which cell.
  using Watcher = std::function<void(int rank, Cell cell, const Step& step, TermId value)>;
  void watch(Watcher watcher) { watcher_ = std::move(watcher); }

  Verdict run();

  [[nodiscard]] const Terms& terms() const { return terms_; }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  static std::size_t rank_of(const Schedule& schedule) { return index(schedule.rank); }
  [[nodiscard]] int size() const { return static_cast<int>(world_.ranks.size()); }

  void split_channels(const Schedule& schedule);

  // Channels run independently, so what one writes no other may touch.
  void check_channels(const Schedule& schedule);

  // Cells of its own rank that a step reads or writes.
  std::vector<Touch> touches(int rank, const Step& step);

  // Steps of a round run in any order: no two may meet in a cell that one of them writes.
  void begin_round(int rank, Stream& stream);

  void post(int rank, const Step& step);

  bool advance(int rank, Stream& stream);

  bool attempt(int rank, const Step& step);

  bool was_taken(int rank, const Step& step);

  bool receive(int rank, const Step& step);

  bool local(int rank, const Step& step);

  bool publish(int rank, const Step& step);

  // A gather in round k begins when every member it reads has completed its rounds before k.
  bool gather(int rank, const Step& step);

  // Whoever works in others' memory must know that they have come, and where it lies: a publish
  // without chunks in an earlier round says both.
  void check_exposed(int rank, const Step& step, const std::vector<int>& group);

  void reduce_everywhere(int rank, const Step& step, const std::vector<int>& group);

  template <class Get>
  TermId fold(const std::vector<int>& group, Get get) {
    TermId value = kUndefined;
    for (const int member : group) {
      const TermId next = get(member);
      value = value == kUndefined ? next : terms_.combine(value, next);
    }
    return value;
  }

  TermId on_board(int rank, const Step& step, int member, std::uint32_t i);

  [[nodiscard]] std::uint32_t completed(int rank) const;

  TermId read(int rank, const Step& step, const Chunks& range, std::uint32_t i);

  void write(int rank, const Step& step, const Chunks& range, std::uint32_t i, TermId value);
  void set(int rank, Cell cell, const Step& step, TermId value);

  // What another rank wrote into my memory is mine to touch only once I know it has finished.
  void check_remote(int rank, const Step& step, Cell cell);

  void note_readers();

  // Published by reference: the source must stay as it is until each reader is known to be done.
  void check_still_read(int rank, const Step& step, Cell cell);

  void learn(int rank, const std::vector<bool>& from);

  void check_finished();
  // By reference: nobody may return, and let its caller change what it published, before all who
  // read it are known to have done so.
  void check_all_read();

  // The input leaves that output chunk `chunk` of `rank` must combine, in rank order.
  std::vector<TermId> expected(int rank, std::uint32_t chunk) const;

  Verdict check_result();

  void check_chunk(int rank, std::uint32_t chunk, Cell cell, TermId value,
                   const std::vector<TermId>& leaves);

  void check_barrier();

  static std::string describe(int rank, const Step& step);

  const World& world_;
  Conditions conditions_;
  Watcher watcher_;
  Terms terms_;
  std::deque<Memory> memories_;
  std::vector<std::vector<Stream>> streams_;
  std::map<Lane, std::vector<Sent>> lanes_;
  std::map<Lane, std::vector<std::vector<bool>>> known_at_send_;
  std::vector<std::vector<const Step*>> writer_;
  std::vector<std::vector<std::optional<std::pair<int, std::uint32_t>>>> remote_;
  std::vector<std::map<std::uint32_t, const Step*>> published_;
  std::map<std::pair<int, std::uint32_t>, std::vector<std::pair<int, std::uint32_t>>> readers_;
  std::vector<std::vector<std::int64_t>> heard_;  // [r][m]: last round of m that r has waited for
  std::vector<std::vector<bool>> knows_;          // [r][m]: r's state depends on m having begun
};

}  // namespace sinew::detail
