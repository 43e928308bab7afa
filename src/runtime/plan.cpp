#include "runtime/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include <sinew/error.hpp>
#include "schedule/form.hpp"
#include "transport/board.hpp"

namespace sinew {
namespace {

constexpr std::uint64_t kLineBytes = 64;
// Past this, what the ranks of a node receive in a call does not stay in the cache that they share,
// and ordinary stores would first read it; but little of one rank stays in its own.
constexpr std::uint64_t kStreamingBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kStreamingLeast = std::uint64_t{2} << 20;

// How slots are written matters from here on, and the time of a run shows it: with a core for each
// rank early, because two readings of the clock are little beside the copying; with shared cores
// later, when the copying shows beside the waiting for turns.
constexpr std::uint64_t kMeasuredAlone = std::uint64_t{4} << 10;
constexpr std::uint64_t kMeasuredCrowded = std::uint64_t{32} << 10;

// Publish, fold, publish the result, read it. Whether a rank has such a fold depends on its part
// (the root of a reduce has none), but the number of rounds does not.
constexpr std::uint32_t kEchoingRounds = 4;

std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

}  // namespace

Plan::Plan(Schedule schedule, Binding binding)
    : schedule_(std::move(schedule)), binding_(std::move(binding)) {
  lower();
}

const ChunkMap& Plan::map(Buf buf) const {
  return buf == Buf::input ? binding_.input : buf == Buf::output ? binding_.output : scratch_map_;
}

void Plan::lower() {
  if (schedule_.by_reference && binding_.world == nullptr)
    throw Error(Errc::unsupported, fmt::format("{}: what others publish by reference is found in "
                                               "their schedules",
                                               schedule_.name));
  const auto& full = schedule_.chunks[0] >= schedule_.chunks[1] ? binding_.input : binding_.output;
  // Scratch chunks begin on cache lines; what lies between them is never read.
  scratch_map_.offsets.assign(1, 0);
  for (const auto like : schedule_.scratch_like)
    scratch_map_.offsets.push_back(scratch_map_.offsets.back() + full.bytes(like));
  staged_bytes = binding_.staged ? round_up(binding_.input.total()) : 0;
  const auto needed = staged_bytes + scratch_map_.total() + kLineBytes;
  if (needed > scratch_capacity_) {
    scratch = std::make_unique_for_overwrite<std::byte[]>(needed);
    scratch_capacity_ = needed;
  }

  reducer = reduces_anything() ? find_reducer(binding_.dtype, binding_.op) : Reducer{};
  cut_passes();
  make_room_to_pull();
  groups = schedule_.groups;
  groups.emplace_back(static_cast<std::size_t>(schedule_.size));
  std::iota(groups.back().begin(), groups.back().end(), 0);
  list_waits();

  steps.clear();
  streams.clear();
  std::map<int, std::vector<BoundRound>> by_channel;
  bool published = false;
  for (const auto& step : schedule_.steps) {
    auto& rounds = by_channel[step.channel];
    const auto begin = static_cast<std::uint32_t>(steps.size());
    if (rounds.empty() || rounds.back().number != step.round || rounds.back().end != begin)
      rounds.push_back({.begin = begin, .end = begin, .number = step.round});
    add_step(step);
    rounds.back().end = static_cast<std::uint32_t>(steps.size());
    const bool announces = step.op == Op::publish || step.op == Op::gather_reduce_all;
    rounds.back().post |= announces;
    published |= announces;
  }
  // Whoever only reads in a pass must say so at its end, or writers would wait for ever.
  if (uses_board && !published && !by_channel[0].empty()) by_channel[0].back().post = true;
  if (uses_board) plan_posts(by_channel[0]);
  for (auto& [channel, rounds] : by_channel) streams.push_back(std::move(rounds));
  has_wide_rounds = false;
  for (auto& rounds : streams)
    for (auto& round : rounds) {
      if (round.end - round.begin == 1) round.only = &steps[round.begin];
      has_wide_rounds |= round.only == nullptr;
    }

  // An average is a sum divided where it becomes complete: right after a fold over everybody, while
  // it is still in cache; otherwise in the output, at the end.
  const bool average = binding_.op == ReduceOp::avg;
  const auto folds_everybody = [&](const BoundStep& step) {
    return (step.op == Op::gather_reduce || step.op == Op::gather_reduce_all) &&
           groups[static_cast<std::size_t>(step.group)].size() ==
               static_cast<std::size_t>(schedule_.size);
  };
  divide_folds =
      average && binding_.divides_folds && std::any_of(steps.begin(), steps.end(), folds_everybody);
  divide_output = average && !divide_folds && binding_.has_output;
  if (uses_board && !divide_folds && !by_reference) fuse_echoes(streams.front());
  const auto longest = std::max(binding_.input.total(), binding_.output.total());
  starts_ahead = publishes_once_and_folds();
  // What starts ahead writes a few lines again and again, which stay in the cache.
  measures_stores = uses_board && !starts_ahead && !tiny && !by_reference &&
                    longest >= (binding_.crowded ? kMeasuredCrowded : kMeasuredAlone);
  stores.expect(passes, schedule_.rounds >= kEchoingRounds);
  binding_.world = nullptr;  // the caller's, for as long as binding takes
  transfers.assign(steps.size(), {});
  done.assign(steps.size(), 0);
  inputs.assign(static_cast<std::size_t>(schedule_.size), nullptr);
  outputs.assign(static_cast<std::size_t>(schedule_.size), nullptr);
}

void Plan::list_waits() {
  waits = groups.back();
  for (const auto& group : groups)
    std::copy_if(group.begin(), group.end(), std::back_inserter(waits),
                 [&](int member) { return member != schedule_.rank; });
}

void Plan::find_waits(BoundStep& step) const {
  const auto without_me = [&](const std::vector<int>& group) {
    return static_cast<std::uint32_t>(
        group.size() -
        static_cast<std::size_t>(std::count(group.begin(), group.end(), schedule_.rank)));
  };
  if (step.op != Op::publish && step.peer >= 0) {
    step.waits_begin = static_cast<std::uint32_t>(step.peer);
    step.waits_end = step.waits_begin + (step.peer == schedule_.rank ? 0 : 1);
    return;
  }
  step.waits_begin = static_cast<std::uint32_t>(schedule_.size);
  for (std::int32_t group = 0; group < step.group; ++group)
    step.waits_begin += without_me(groups[static_cast<std::size_t>(group)]);
  step.waits_end = step.waits_begin + without_me(groups[static_cast<std::size_t>(step.group)]);
}

// A position says that all rounds before it are over, those without steps included.
void Plan::plan_posts(std::vector<BoundRound>& rounds) {
  posts_start = binding_.posts_all;
  first_round = rounds.empty() ? schedule_.rounds : rounds.front().number;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    rounds[i].post |= binding_.posts_all;
    rounds[i].then = i + 1 < rounds.size() ? rounds[i + 1].number : schedule_.rounds;
  }
}

// A result that is published in the very next round is written to the slot by the fold itself,
// instead of being read again. The slot is known to be free: this pass has published before.
void Plan::fuse_echoes(std::vector<BoundRound>& rounds) {
  bool slot_is_free = false;
  for (std::size_t i = 0; i + 1 < rounds.size(); ++i) {
    auto& fold = steps[rounds[i].begin];
    auto& next = steps[rounds[i + 1].begin];
    const bool alone =
        rounds[i].end - rounds[i].begin == 1 && rounds[i + 1].end - rounds[i + 1].begin == 1;
    if (slot_is_free && alone && fold.op == Op::gather_reduce && next.op == Op::publish &&
        fold.dst_buf == next.src_buf && fold.dst == next.src && fold.bytes == next.bytes) {
      fold.echoes = next.echoed = true;
      fold.echo = next.board;
    }
    slot_is_free |= steps[rounds[i].begin].op == Op::publish;
  }
}

// Where those who are read keep what they published: their own schedules say. Buffers are cut alike
// on all ranks, so our maps hold there too.
void Plan::find_remote(const Step& step, BoundStep& bound) const {
  if (step.op == Op::publish || step.board.count == 0) return;
  const auto covers = [&](const Step& theirs) {
    return theirs.op == Op::publish && theirs.board.first <= step.board.first &&
           theirs.board.first + theirs.board.count >= step.board.first + step.board.count;
  };
  const auto group = step.peer >= 0 ? std::vector<int>{step.peer} : members(schedule_, step);
  bool found = false;
  for (const int member : group) {
    const auto& others = binding_.world->ranks[static_cast<std::size_t>(member)].steps;
    const auto theirs = std::find_if(others.begin(), others.end(), covers);
    if (member == schedule_.rank) continue;
    if (theirs == others.end())
      throw Error(Errc::unsupported,
                  fmt::format("{}: rank {} publishes by reference in several steps what a {} reads "
                              "in one",
                              schedule_.name, member, name(step.op)));
    const bool from_output = theirs->src.buf == Buf::output;
    const auto chunk = theirs->src.first + step.board.first - theirs->board.first;
    if (binding_.tells_places && (from_output || step.board.count != 1))
      throw Error(
          Errc::unsupported,
          fmt::format("{}: only one chunk of an input can be told where it lies", schedule_.name));
    const auto remote = binding_.tells_places ? chunk : map(theirs->src.buf).offsets[chunk];
    if (found && (from_output != bound.from_output || remote != bound.remote))
      throw Error(Errc::unsupported,
                  fmt::format("{}: what a {} reads by reference lies elsewhere on each rank",
                              schedule_.name, name(step.op)));
    bound.from_output = from_output;
    bound.remote = remote;
    found = true;
  }
}

// As much of everybody's at a time as stays in a near cache until it is reduced.
void Plan::make_room_to_pull() {
  constexpr std::uint64_t kAll = std::uint64_t{256} << 10, kLeast = std::uint64_t{32} << 10;
  if (!by_reference || !reduces_anything()) return;
  const auto others = static_cast<std::uint64_t>(std::max(1, schedule_.size - 1));
  pulled_block = round_up(std::max(kAll / others, kLeast));
  // A few lines apart, so that equal places do not compete for the same ways of a cache.
  constexpr std::uint64_t kApart = 5 * kLineBytes;
  pulled_stride = pulled_block + kApart;
  pulled = std::make_unique_for_overwrite<std::byte[]>(others * pulled_stride);
}

std::uint64_t Plan::bytes_sent() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& step : steps) {
    if (step.op == Op::send || (step.op == Op::publish && !by_reference)) bytes += step.bytes;
    if (step.op == Op::gather_reduce_all) bytes += (step.waits_end - step.waits_begin) * step.bytes;
  }
  return bytes;
}

std::uint64_t Plan::bytes_received() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& step : steps) {
    if (step.op == Op::recv || step.op == Op::recv_reduce) bytes += step.bytes;
    // A gather reads from everybody it waits for.
    if (is_board_op(step.op) && step.op != Op::publish)
      bytes += (step.waits_end - step.waits_begin) * step.bytes;
  }
  return bytes;
}

bool Plan::reduces_anything() const {
  return std::any_of(schedule_.steps.begin(), schedule_.steps.end(), [](const Step& step) {
    return step.op == Op::recv_reduce || step.op == Op::reduce || step.op == Op::gather_reduce ||
           step.op == Op::gather_reduce_all;
  });
}

// What a run may post before it has begun: the next one does the same, and when this one is done
// everybody is past the one before it.
bool Plan::publishes_once_and_folds() const {
  const bool is_short = tiny || (window_bytes > 0 && window_bytes < Board::kShort);
  if (!is_short || passes > 1 || posts_start || staged_bytes > 0 || streams.size() != 1 ||
      streams.front().size() != 2)
    return false;
  const auto& first = streams.front()[0];
  const auto& second = streams.front()[1];
  return first.only != nullptr && first.only->op == Op::publish && first.post &&
         !first.only->echoed && first.only->src_buf == Buf::input && second.only != nullptr &&
         second.only->op == Op::gather_reduce &&
         second.only->waits_end - second.only->waits_begin + 1 ==
             static_cast<std::uint32_t>(schedule_.size);
}

// A board schedule runs over slices that fit the slots, one of messages over slices that stay in
// cache where that pays: all its chunks, `width` bytes at a time.
void Plan::cut_passes() {
  // The same answer on every rank, or they would count different positions.
  uses_board = binding_.on_board || schedule_.chunks[3] > 0 ||
               std::any_of(schedule_.steps.begin(), schedule_.steps.end(),
                           [](const Step& step) { return is_board_op(step.op); });
  passes = 1;
  tiny = false;
  width = ~std::uint64_t{0};
  window_bytes = 0;
  by_reference = schedule_.by_reference;
  const auto board_chunks = schedule_.chunks[3];
  const bool in_messages = board_chunks == 0 && !uses_board && binding_.slice_bytes > 0;
  if (by_reference || (board_chunks == 0 && !in_messages)) return;
  std::uint64_t longest = 0;
  for (const auto* map : {&binding_.input, &binding_.output})
    for (std::size_t i = 0; i + 1 < map->offsets.size(); ++i)
      longest = std::max(longest, map->bytes(static_cast<std::uint32_t>(i)));
  // Slices of equal width, so that the last is not a sliver.
  const auto cut = [&](std::uint64_t most) {
    passes = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (longest + most - 1) / most));
    width = std::min(most, round_up((longest + passes - 1) / passes));
  };
  if (in_messages) {
    if (longest > binding_.slice_bytes) cut(binding_.slice_bytes);
    return;
  }
  const auto fits = binding_.slot_bytes / board_chunks / kLineBytes * kLineBytes;
  if (fits == 0)
    throw Error(Errc::unsupported, fmt::format("{}: {} board chunks do not fit a slot of {} bytes",
                                               schedule_.name, board_chunks, binding_.slot_bytes));
  constexpr std::uint64_t kWord = 8;
  const auto words = (longest + kWord - 1) / kWord * kWord;
  tiny = words * board_chunks <= FlagLine::kTiny;
  if (tiny) {
    width = words;
    return;
  }
  cut(fits);
  window_bytes = width * board_chunks;
}

void Plan::add_step(const Step& step) {
  // Slices and slots want every chunk on its own; otherwise a range is one piece.
  const auto count = std::max({step.src.count, step.dst.count, step.board.count});
  const bool whole = (schedule_.chunks[3] == 0 && passes == 1) || by_reference || count <= 1;
  if (whole) return add_piece(step, 0, count);
  for (std::uint32_t chunk = 0; chunk < count; ++chunk) add_piece(step, chunk, 1);
}

void Plan::add_piece(const Step& step, std::uint32_t chunk, std::uint32_t count) {
  BoundStep bound;
  bound.op = step.op;
  bound.channel = step.channel;
  bound.peer = step.peer;
  bound.group = step.group >= 0 ? step.group : static_cast<std::int32_t>(schedule_.groups.size());
  bound.src_buf = step.src.buf;
  bound.dst_buf = step.dst.buf;
  const bool has_src = step.src.count > 0, has_dst = step.dst.count > 0;
  std::uint64_t from = 0, to = 0;
  if (has_src) {
    bound.src = map(step.src.buf).offsets[step.src.first + chunk];
    from = map(step.src.buf).bytes(step.src.first + chunk, count);
  }
  if (has_dst) {
    bound.dst = map(step.dst.buf).offsets[step.dst.first + chunk];
    to = map(step.dst.buf).bytes(step.dst.first + chunk, count);
  }
  if (has_src && has_dst && from != to)
    throw Error(Errc::unsupported,
                fmt::format("{}: a {} moves chunks of {} bytes into chunks of {}", schedule_.name,
                            name(step.op), from, to));
  bound.bytes = has_dst ? to : from;
  if (by_reference)
    find_remote(step, bound);
  else
    bound.board = (step.board.first + chunk) * width;
  bound.streaming = writes_past_caches(step, bound);
  if (is_board_op(step.op)) find_waits(bound);
  steps.push_back(bound);
}

// Whether to write past the caches: what no other step uses, and there is too much of to stay. Not
// where this call reads its input: those lines may be near, and would first be pushed out.
bool Plan::writes_past_caches(const Step& step, const BoundStep& bound) const {
  const auto mine = binding_.output.total();
  const auto everybodys = mine * static_cast<std::uint64_t>(binding_.neighbours);
  if (step.dst.buf != Buf::output || step.op == Op::recv_reduce || mine < kStreamingLeast ||
      everybodys < kStreamingBytes)
    return false;
  const auto meets = [&](const Chunks& chunks) {
    const bool lies_there =
        chunks.buf == Buf::output || (chunks.buf == Buf::input && binding_.over_input);
    if (chunks.count == 0 || !lies_there) return false;
    const auto begin = map(chunks.buf).offsets[chunks.first];
    const auto end = begin + map(chunks.buf).bytes(chunks.first, chunks.count);
    return begin < bound.dst + bound.bytes && bound.dst < end;
  };
  return std::none_of(schedule_.steps.begin(), schedule_.steps.end(), [&](const Step& other) {
    const bool adds = other.op == Op::recv_reduce || other.op == Op::reduce;
    return meets(other.src) || (adds && meets(other.dst));
  });
}

}  // namespace sinew
