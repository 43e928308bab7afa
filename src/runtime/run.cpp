#include "runtime/run.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "kernel/copy.hpp"
#include "runtime/fingerprint.hpp"
#include "schedule/form.hpp"

namespace sinew {
namespace {

std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
}

}  // namespace

void Run::begin(OpTag tag, const OpDescriptor& descriptor, std::uint64_t hash) noexcept {
  tag_ = tag;
  hash_ = hash;
  ahead_.ready = false;
  descriptor_ = &descriptor;
  entered_ = false;
  observer_ = nullptr;
  pass_ = 0;
  settled_ = plan_->streams.empty();
  if (plan_->staged_bytes > 0) {
    std::memcpy(plan_->scratch.get(), input_, plan_->binding().input.total());
    input_ = plan_->scratch.get();
  }
  base_[0] = const_cast<std::byte*>(input_);  // never written: steps write to output and scratch
  base_[1] = output_;
  base_[2] = plan_->scratch.get() + plan_->staged_bytes;
  if (board_ != nullptr)
    board_->begin(tag, plan_->uses_board ? plan_->passes * plan_->schedule().rounds : 0);
  past_caches_ = plan_->measures_stores ? plan_->stores.next() : PastCaches::none;
  begun_ns_ = plan_->measures_stores && plan_->stores.measures() ? now_ns() : 0;
  if (!plan_->uses_board) enter();
  begin_pass();
}

// What others need only when something is wrong is told once our part is on the board: they have it
// a little earlier, and we would only be waiting for theirs.
void Run::enter() noexcept {
  entered_ = true;
  transport_->enter(tag_, *descriptor_);
  if (plan_->starts_ahead) get_ready();
}

// Between having posted and having what others post there is time. Calls mostly repeat: what the
// next one has to do before it can post is done here.
void Run::get_ready() noexcept {
  const auto& round = plan_->streams.front().front();
  // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): only plans of a board start ahead
  ahead_.first = board_->next();
  ahead_.position = ahead_.first + 1 + round.then;
  ahead_.fingerprint = next_fingerprint(tag_.fingerprint, hash_, descriptor_->tag);
  ahead_.tag = descriptor_->tag;
  ahead_.slot =
      (plan_->tiny ? board_->next_tiny_slot() : board_->next_short_slot()) + round.only->board;
  ahead_.source = round.only->src;
  ahead_.bytes = round.only->bytes;
  ahead_.ready = true;
}

void Run::post_ahead() noexcept {
  // All who may still read the slot posted their part of the run that is done, so they are past
  // the run before it, which used this slot.
  const std::byte* const from = input_ + ahead_.source;
  constexpr std::size_t kWord = 8;  // the most frequent, and too short for a call
  if (ahead_.bytes == kWord)
    std::memcpy(ahead_.slot, from, kWord);
  else
    copy_bytes(ahead_.slot, from, ahead_.bytes, false);
  board_->post_ahead(ahead_.position, ahead_.fingerprint);
}

// What others wait for comes before all else, and most of what begin() finds out is as it was. What
// can be done before theirs is there is not left for later.
[[gnu::flatten]] Progress Run::repeat(std::uint32_t sequence) noexcept {
  post_ahead();
  tag_ = {sequence, ahead_.fingerprint};
  board_->begin_posted(tag_, plan_->schedule().rounds);
  begin_pass_on_board();
  observer_ = nullptr;
  enter();
  moved_ = true;
  const auto& round = plan_->streams.front().back();
  const auto& step = *round.only;
  const auto inputs = inputs_of(step, 0);
  if (!arrived(step, at(round.number))) [[unlikely]] {
    settled_ = false;
    next_[0] = &round;
    round_ = round.number;
    return not_yet();
  }
  if (step.bytes > 0) fold(step, 0, step.bytes, inputs);
  settled_ = !next_pass();
  return Progress::done;
}

void Run::begin_pass() noexcept {
  auto* next = next_;
  for (const auto& rounds : plan_->streams) *next++ = rounds.data();
  if (plan_->has_wide_rounds) std::fill(plan_->done.begin(), plan_->done.end(), 0);
  if (plan_->uses_board) begin_pass_on_board();
  if (plan_->posts_start) board_->post(at(plan_->first_round));
}

void Run::begin_pass_on_board() noexcept {
  board_->begin_pass();
  first_position_ = board_->first() + 1 + pass_ * plan_->schedule().rounds;
  slots_ = plan_->tiny ? board_->tiny_slots() : board_->slots(plan_->window_bytes);
}

void Run::observe(Observer& observer, const Event& event) noexcept {
  observer_ = &observer;
  event_ = event;
  event_.begin_ns = now_ns();
  idle_since_ns_ = 0;
}

// Short operations spend as long in here as on the wire, so that calls count: all that runs every
// time is one function.
[[gnu::flatten]] Progress Run::poll() noexcept {
  moved_ = false;
  while (!settled_) {
    bool all_done = true;
    auto* next = next_;
    for (const auto& rounds : plan_->streams) {
      const auto progress = poll_stream(*next++, rounds.data() + rounds.size());
      if (progress == Progress::failed) return progress;
      all_done &= progress == Progress::done;
    }
    if (!all_done) break;
    settled_ = !next_pass();
  }
  if (!entered_) enter();
  if (observer_ != nullptr) [[unlikely]]
    observe_end();
  return settled_ ? Progress::done : Progress::pending;
}

Progress Run::poll_stream(const BoundRound*& next, const BoundRound* end) noexcept {
  for (; next != end; ++next) {
    round_ = next->number;
    const auto progress = next->only != nullptr ? poll_step(*next->only) : poll_wide(*next);
    if (progress != Progress::done) return progress;
    if (!next->post) continue;
    board_->post(at(next->then));
    if (!entered_) enter();
  }
  return Progress::done;
}

Progress Run::poll_step(const BoundStep& step) noexcept {
  const auto progress = attempt(step);
  if (progress != Progress::done) return progress;
  moved_ = true;
  if (observer_ != nullptr) [[unlikely]]
    observe_step(step);
  return progress;
}

// Several steps: each as soon as it can.
Progress Run::poll_wide(const BoundRound& round) noexcept {
  auto all = Progress::done;
  for (auto index = round.begin; index < round.end; ++index) {
    auto& done = plan_->done[index];
    if (done != 0) continue;
    const auto progress = poll_step(plan_->steps[index]);
    if (progress == Progress::failed) return progress;
    if (progress == Progress::pending) all = progress;
    done = progress == Progress::done ? 1 : 0;
  }
  return all;
}

// The schedule again, over the next slice. False: that was the last.
bool Run::next_pass() noexcept {
  if (plan_->uses_board) board_->end_pass(at(plan_->schedule().rounds));
  if (pass_ + 1 < plan_->passes) {
    ++pass_;
    begin_pass();
    return true;
  }
  if (plan_->divide_output)
    divide(plan_->binding().dtype, output_,
           plan_->binding().output.total() / size_of(plan_->binding().dtype),
           plan_->binding().divisor);
  if (begun_ns_ != 0) plan_->stores.took(now_ns() - begun_ns_);
  return false;
}

Run::Slice Run::slice_of(const BoundStep& step) const noexcept {
  const auto begin = plan_->passes == 1 ? 0 : pass_ * plan_->width;
  return {begin, begin >= step.bytes ? 0 : std::min(plan_->width, step.bytes - begin)};
}

Progress Run::attempt(const BoundStep& step) noexcept {
  const auto [begin, bytes] = slice_of(step);
  if (bytes == 0 && step.bytes > 0) return Progress::done;  // of this chunk nothing is left
  switch (step.op) {
    case Op::send:
    case Op::recv:
    case Op::recv_reduce: {
      if (bytes == 0 && pass_ > 0) return Progress::done;  // an empty chunk goes but once
      if (!entered_) enter();
      Transfer& transfer = plan_->transfer_of(step);
      if (transfer.tag.sequence != tag_.sequence || transfer.pass != pass_)
        transfer = {step.peer, step.channel, tag_, 0, pass_};
      if (step.op == Op::send) {
        const auto before = transfer.moved;
        const auto progress = transport_->send(transfer, {source(step) + begin, bytes});
        moved_ |= transfer.moved != before;
        return progress;
      }
      const std::span<std::byte> into{destination(step) + begin, bytes};
      const auto before = transfer.moved;
      const auto progress = step.op == Op::recv
                                ? transport_->recv(transfer, into)
                                : transport_->recv_reduce(transfer, into, plan_->reducer);
      moved_ |= transfer.moved != before;
      return progress;
    }
    case Op::copy:
      copy_bytes(destination(step) + begin, source(step) + begin, bytes, step.streaming);
      return Progress::done;
    case Op::reduce:
      plan_->reducer.pair(destination(step) + begin, source(step) + begin,
                          bytes / plan_->reducer.element_bytes);
      return Progress::done;
    case Op::publish:
      return publish(step, begin, bytes);
    default:
      return gather(step, begin, bytes);
  }
}

// Everyone a board step waits for has come to `position`.
bool Run::arrived(const BoundStep& step, std::uint32_t position) noexcept {
  return board_->all_reached(waits_of(step), position);
}

Progress Run::not_yet() noexcept {
  if (board_->mismatch() < 0) return Progress::pending;
  if (!entered_) enter();
  return transport_->mismatched(board_->mismatch());
}

Progress Run::publish(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes) noexcept {
  // The slot was last used two passes ago; its readers must be done with it.
  if (!arrived(step, board_->writable_after())) return not_yet();
  if (step.echoed) return Progress::done;
  if (bytes == 0 || plan_->by_reference) {
    const auto* const places = plan_->binding().input.offsets.data();
    board_->expose(input_,
                   plan_->binding().tells_places ? static_cast<const void*>(places) : output_);
    return Progress::done;
  }
  board_->count_work(bytes);
  copy_bytes(slot(rank_) + step.board, source(step) + begin, bytes,
             past_caches_ == PastCaches::all);
  return Progress::done;
}

Progress Run::gather(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes) noexcept {
  if (!arrived(step, at(round_))) return not_yet();
  // Whether a part is empty where it lies, too, is still to be seen.
  const bool has_owner = step.peer >= 0 && plan_->binding().tells_places;
  if (bytes == 0 && !has_owner) return Progress::done;
  board_->count_work(bytes);
  if (plan_->by_reference) return gather_by_reference(step);
  if (step.op == Op::gather_copy)
    copy_bytes(destination(step) + begin, slot(step.peer) + step.board, bytes, step.streaming);
  else if (step.op == Op::gather_reduce)
    fold(step, begin, bytes, inputs_of(step, begin));
  else
    fold_everywhere(step, begin, bytes);
  return Progress::done;
}

// Out of others' own memory. Whoever gave up has let its caller have that again, so that what was
// read counts only if nobody has.
Progress Run::gather_by_reference(const BoundStep& step) noexcept {
  if (board_->is_poisoned()) return Progress::failed;
  const auto progress = read_others(step);
  return progress == Progress::done && board_->is_poisoned() ? Progress::failed : progress;
}

// What is amiss with a member's memory is no news if it has given up.
Progress Run::not_readable(int member) noexcept {
  const int error = board_->pull_error();
  if (board_->is_poisoned()) return Progress::failed;
  if (error == ESRCH) return transport_->lost(member);
  transport_->poison({Errc::system, member,
                      "the memory of rank " + std::to_string(member) + " cannot be read by rank " +
                          std::to_string(rank_) + ": " + std::strerror(error) +
                          "; name an algorithm that copies it (direct)"});
  return Progress::failed;
}

// What cannot be read where it lies is fetched in blocks, which are still in a near cache when they
// are reduced.
Progress Run::read_others(const BoundStep& step) noexcept {
  if (plan_->binding().tells_places) return read_where_told(step);
  if (step.op == Op::gather_copy)
    return board_->pull(step.peer, step.from_output, step.remote, destination(step), step.bytes,
                        step.streaming)
               ? Progress::done
               : not_readable(step.peer);
  const auto& group = plan_->groups[static_cast<std::size_t>(step.group)];
  for (std::uint64_t begin = 0; begin < step.bytes; begin += plan_->pulled_block) {
    const auto bytes = std::min(plan_->pulled_block, step.bytes - begin);
    std::byte* room = plan_->pulled.get();
    std::size_t count = 0;
    for (const int member : group) {
      const std::byte* from = source(step) + begin;
      if (member != rank_) {
        from = board_->in_sight(member, step.from_output);
        if (from != nullptr) {
          from += step.remote + begin;
        } else {
          if (!board_->pull(member, step.from_output, step.remote + begin, room, bytes, false))
            return not_readable(member);
          from = std::exchange(room, room + plan_->pulled_stride);
        }
      }
      plan_->inputs[count++] = from;
    }
    std::byte* const into = destination(step) + begin;
    const auto elements = bytes / plan_->reducer.element_bytes;
    plan_->reducer.fold({&into, 1}, {plan_->inputs.data(), count}, elements, 0);
    if (plan_->divide_folds)
      divide(plan_->binding().dtype, into, elements, plan_->binding().divisor);
  }
  return Progress::done;
}

// Both ends of the chunk are in its owner's table, so that different ideas of its length show.
Progress Run::read_where_told(const BoundStep& step) noexcept {
  std::uint64_t ends[2] = {};
  if (!board_->pull(step.peer, true, step.remote * sizeof ends[0],
                    reinterpret_cast<std::byte*>(ends), sizeof ends, false))
    return not_readable(step.peer);
  if (board_->is_poisoned()) return Progress::failed;  // that table may be gone
  if (ends[1] - ends[0] != step.bytes)
    return transport_->wrong_length(step.peer, ends[1] - ends[0], step.bytes);
  return board_->pull(step.peer, false, ends[0], destination(step), step.bytes, step.streaming)
             ? Progress::done
             : not_readable(step.peer);
}

Run::Inputs Run::inputs_of(const BoundStep& step, std::uint64_t begin) noexcept {
  const std::byte** const inputs = plan_->inputs.data();
  std::size_t count = 0;
  for (const int member : plan_->groups[static_cast<std::size_t>(step.group)])
    inputs[count++] = member == rank_ ? source(step) + begin : slot(member) + step.board;
  return {inputs, count};
}

void Run::fold(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes,
               Inputs inputs) noexcept {
  std::byte* const into[] = {destination(step) + begin, slot(rank_) + step.echo};
  const auto elements = bytes >> std::countr_zero(plan_->reducer.element_bytes);
  plan_->reducer.fold({into, step.echoes ? 2U : 1U}, inputs, elements,
                      step.echoes && past_caches_ != PastCaches::none ? 1 : 0);
  if (plan_->divide_folds)
    divide(plan_->binding().dtype, into[0], elements, plan_->binding().divisor);
}

// From everybody's buffer into everybody's buffer, block by block so that an average is divided
// while it is in cache.
void Run::fold_everywhere(const BoundStep& step, std::uint64_t begin,
                          std::uint64_t bytes) noexcept {
  const auto& group = plan_->groups[static_cast<std::size_t>(step.group)];
  const auto element = plan_->reducer.element_bytes;
  for (std::uint64_t piece = 0; piece < bytes; piece += Plan::kBlockBytes) {
    const auto length = std::min(Plan::kBlockBytes, bytes - piece);
    std::size_t count = 0;
    for (const int member : group) {
      plan_->inputs[count] =
          board_->exposed(member, step.src_buf == Buf::output) + step.src + begin + piece;
      plan_->outputs[count++] = board_->exposed(member, true) + step.dst + begin + piece;
    }
    plan_->reducer.fold({plan_->outputs.data(), count}, {plan_->inputs.data(), count},
                        length / element, 0);
    if (!plan_->divide_folds) continue;
    for (std::size_t i = 0; i < count; ++i)
      divide(plan_->binding().dtype, plan_->outputs[i], length / element, plan_->binding().divisor);
  }
}

void Run::observe_step(const BoundStep& step) noexcept {
  const auto bytes = slice_of(step).bytes;
  // Only who waits for others does something in a pass without bytes.
  if (bytes == 0 && (step.bytes > 0 || (pass_ > 0 && !is_board_op(step.op)))) return;
  const auto now = now_ns();
  Event event = event_;
  event.kind = EventKind::step;
  event.operation = static_cast<std::uint8_t>(step.op);
  event.channel = step.channel;
  event.round = round_;
  event.peer = step.peer;
  event.bytes = bytes;
  event.begin_ns = idle_since_ns_ != 0 ? idle_since_ns_ : now;
  event.end_ns = now;
  event.waiting_ns = 0;
  observer_->on_event(event);
}

// Between a poll that moved nothing and the next that did, the run was waiting.
void Run::observe_end() noexcept {
  const auto now = now_ns();
  if (!moved_ && idle_since_ns_ == 0) idle_since_ns_ = now;
  if (moved_ && idle_since_ns_ != 0) event_.waiting_ns += now - std::exchange(idle_since_ns_, 0);
  if (!settled_) return;
  event_.end_ns = now;
  observer_->on_event(event_);
}

Run::Position Run::position() const noexcept {
  Position position{plan_->schedule().name,
                    pass_,
                    plan_->passes,
                    round_,
                    plan_->schedule().rounds,
                    nullptr,
                    0,
                    0};
  const auto* const* next = next_;
  for (const auto& rounds : plan_->streams) {
    const BoundRound* const round = *next++;
    if (round == rounds.data() + rounds.size()) continue;
    for (auto index = round->begin; index < round->end; ++index) {
      if (round->only == nullptr && plan_->done[index] != 0) continue;
      position.step = &plan_->steps[index];
      position.round = round->number;
      const auto& transfer = plan_->transfers[index];
      const bool begun = transfer.tag.sequence == tag_.sequence && transfer.pass == pass_;
      position.bytes_done = begun ? transfer.moved : 0;
      position.bytes_expected = slice_of(*position.step).bytes;
      return position;
    }
  }
  return position;
}

}  // namespace sinew
